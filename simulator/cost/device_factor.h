// A device that computes faster or slower than it does.
#pragma once

#include "models/cluster/cluster.h"
#include "models/profile/profile.h"

namespace paceline::simulator {

// The cluster whose devices compute this many times as fast: arithmetic, memory, and the fixed time of
// a layer. `factor` is positive. Links and the start of a collective stay.
[[nodiscard]] models::Cluster with_device(models::Cluster cluster, double factor);

// The profile as it would be calibrated on that cluster.
[[nodiscard]] models::Profile with_device(models::Profile profile, double factor);

}  // namespace paceline::simulator
