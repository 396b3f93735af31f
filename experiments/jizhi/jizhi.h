// What Jia et al. 2018 (the Jizhi paper) measured, beside what we predict.
#pragma once

#include "experiments/published/result.h"

namespace paceline::experiments {

// Calibrates on the rows of expected.csv that say so (two throughputs of one GPU, and the NIC
// latency from one efficiency), and predicts all others. Takes about 0.1 s.
[[nodiscard]] Reproduction reproduce_jizhi();

}  // namespace paceline::experiments
