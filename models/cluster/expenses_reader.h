// Reads what a cluster costs: its keys `power` and `price`. Private to .cc files of models/cluster (it
// shows yaml-cpp).
#pragma once

#include "models/base/yaml_reader.h"
#include "models/cluster/cluster.h"
#include "models/cluster/figure_reader.h"

namespace paceline::models {

// Into `cluster`, with the priors of the catalogue for what the mapping does not say.
void read_expenses(const YamlMap& map, const Basis& basis, Cluster& cluster);

}  // namespace paceline::models
