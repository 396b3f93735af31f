// What a node draws while its ranks train. Its price is a figure of the cluster itself.
#pragma once

#include <optional>

#include "models/base/expense_units.h"
#include "models/base/figure.h"

namespace paceline::models {

// Priors with sources (catalog/expenses.yaml), unless a cluster says otherwise.
struct Power {
  // What a device draws in training, over its rated power.
  Figure<double> training_share;
  // What a node draws beside its devices (processors, memory, NICs, fans, losses of power supplies),
  // over what its devices draw.
  Figure<double> host_share;
  // Power usage effectiveness: what the site draws, over what its nodes draw; at least 1.
  Figure<double> pue;
  // What a whole node draws in training. Where it is known, rated power and both shares are not
  // asked.
  std::optional<Figure<Watts>> node;
};

}  // namespace paceline::models
