// A cluster and a SimGrid platform as JSON, for tools (schemas paceline.cluster/1 and
// paceline.platform/1, docs/formats.md).
#pragma once

#include <string>

#include "models/cluster/cluster.h"
#include "models/cluster/platform.h"

namespace paceline::models {

// The whole document. Each figure has its interval, provenance and source.
[[nodiscard]] std::string to_json(const Cluster& cluster);
[[nodiscard]] std::string to_json(const Platform& platform);

}  // namespace paceline::models
