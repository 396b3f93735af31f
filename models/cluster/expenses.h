// What a node draws while its ranks train. Its price is a figure of the cluster itself.
#pragma once

#include <optional>

#include "models/base/expense_units.h"
#include "models/base/figure.h"

namespace paceline::models {

// Priors with sources (catalog/expenses.yaml), unless a cluster says otherwise.
struct Power {
  // The power that a device draws in training, over its rated power.
  Figure<double> training_share;
  // The power that the rest of a node draws (processors, memory, NICs, fans, losses of power
  // supplies), over what its devices draw.
  Figure<double> host_share;
  // Power usage effectiveness: what the site draws, over what its nodes draw; at least 1.
  Figure<double> pue;
  // The power that a whole node draws in training. Where it is known, neither the rated power nor
  // the shares above count.
  std::optional<Figure<Watts>> node;
};

}  // namespace paceline::models
