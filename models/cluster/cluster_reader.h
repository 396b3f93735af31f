// How devices, links and clusters are read from YAML, for users' files and for the catalogue.
// Private to .cc files of models/cluster (it shows yaml-cpp).
#pragma once

#include <string>

#include "models/base/yaml_reader.h"
#include "models/cluster/cluster.h"
#include "models/cluster/yaml.h"

namespace paceline::models {

// `file` names the text in errors and in sources of figures that have none.
[[nodiscard]] Device read_device(const YAML::Node& node, const std::string& file,
                                 const std::string& name);
[[nodiscard]] Link read_link(const YAML::Node& node, const std::string& file,
                             const std::string& name);
// `name` is empty for a user's file, which names itself under "cluster".
[[nodiscard]] Cluster read_cluster(const YAML::Node& node, const std::string& file,
                                   const std::string& name, const FileReader& read = {});

}  // namespace paceline::models
