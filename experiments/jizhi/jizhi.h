// Jia et al. 2018 (the Jizhi paper): what it measured, beside what we predict.
#pragma once

#include "experiments/reproduction.h"

namespace paceline::experiments {

// Calibrates on the rows of expected.csv that say so (two throughputs of one GPU, and the NIC
// latency from one efficiency), predicts all others. About 0.1 s.
[[nodiscard]] Reproduction reproduce_jizhi();

}  // namespace paceline::experiments
