// Reads the effects of a cluster (effects.h), of users' files and of the catalogue. Private to .cc
// files of models/cluster (it shows yaml-cpp).
#pragma once

#include <string>

#include "models/base/yaml_reader.h"
#include "models/cluster/cluster.h"
#include "models/cluster/effects.h"

namespace paceline::models {

// The catalogue's effects of a GPU, by how it is cooled and by its year.
[[nodiscard]] Effects catalog_effects(const Device& device);

// The effects of processors: ranks that wait for the slowest, and what is unexplained.
[[nodiscard]] Effects catalog_processor_effects();

// `effects` with those of a cluster file's mapping in their place. Throws InputError.
[[nodiscard]] Effects read_effects(const YAML::Node& node, const std::string& file,
                                   Effects effects);

}  // namespace paceline::models
