// Platforms in SimGrid's XML (docs/formats.md, "SimGrid platform"), version 4.1 of its DTD, as
// SimGrid 3.16 to 3.36 read it. This part of the DTD is supported:
//
//   <zone routing="Full">  with <host>, <link>, and a <route> between every two hosts
//   <cluster>              of topology FLAT: links to a crossbar, or to a backbone
//   a zone that holds nothing but one of these
//
// The rest of SimGrid (other routings, traces, torus and fat tree clusters, Wi-Fi) is refused, not
// guessed at.
#pragma once

#include <string>
#include <string_view>

#include "models/cluster/platform.h"

namespace paceline::models {

// Hosts, and therefore ranks, are in the order of the file. `file` names the text in errors. Throws
// InputError with file, line and column. O(text + hosts^2 x links of a route) time, bounded.
[[nodiscard]] Platform parse_simgrid_xml(std::string_view text, const std::string& file);

// Writes one full zone of directed links. parse_simgrid_xml reads it back to an equal value if
// names are distinct.
[[nodiscard]] std::string simgrid_xml(const Platform& platform);

}  // namespace paceline::models
