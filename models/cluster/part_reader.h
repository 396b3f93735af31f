// Reads devices and links, of users' files and of the catalogue. Private to .cc files of
// models/cluster (it shows yaml-cpp).
#pragma once

#include <string>
#include <vector>

#include "models/base/yaml_reader.h"
#include "models/cluster/cluster.h"

namespace paceline::models {

// `file` names the text in errors, and in the sources of figures that name none.
[[nodiscard]] Device read_device(const YAML::Node& node, const std::string& file,
                                 const std::string& name);
[[nodiscard]] Link read_link(const YAML::Node& node, const std::string& file,
                             const std::string& name);

// The keys that a link has, for mappings that have others too, and the link of such a mapping.
[[nodiscard]] std::vector<std::string> link_keys();
// With `states_bandwidth`, a link without base must state a bandwidth, unless it uses TCP, which has a rule.
[[nodiscard]] Link read_link(const YamlMap& map, const std::string& name,
                             bool states_bandwidth = true);

}  // namespace paceline::models
