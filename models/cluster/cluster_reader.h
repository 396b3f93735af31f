// Reads clusters in YAML, of users' files and of the catalogue. Private to .cc files of
// models/cluster (it shows yaml-cpp).
#pragma once

#include <string>

#include "models/base/yaml_reader.h"
#include "models/cluster/cluster.h"
#include "models/cluster/yaml.h"

namespace paceline::models {

// `file` names the text in errors, and in the sources of figures that name none. `name` is empty
// for a user's file, which names itself under "cluster". A platform is read as yaml.h says.
[[nodiscard]] Cluster read_cluster(const YAML::Node& node, const std::string& file,
                                   const std::string& name, const FileReader& read = {});

}  // namespace paceline::models
