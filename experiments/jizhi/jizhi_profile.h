// The profile of Jizhi's cluster that ships.
#pragma once

#include "experiments/published/source.h"
#include "models/profile/profile.h"

namespace paceline::experiments {

// Both throughputs of one GPU of Jia et al. 2018, and the NIC latency at which "before
// optimisation" has the efficiency that they print (calibration/one_point.h). The efficiency is of
// 1,024 GPUs: the reproduction of the paper does not use this profile, because it calibrates on one GPU
// alone. Takes about a second. `source` must be that of experiments/jizhi.
[[nodiscard]] models::Profile jizhi_profile(const Source& source);

}  // namespace paceline::experiments
