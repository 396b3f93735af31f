// Numbers of a 16-bit type that are held in FP32 arrays: how a network computes where its CPU has no
// arithmetic in that type.
#pragma once

#include <span>

#include "models/base/precision.h"

namespace paceline::runtime {

// Rounds each number to the nearest of `type`, ties to even; what is too large becomes infinity.
// FP32 numbers stay as they are. Runs on OpenMP's threads.
void round_to(models::NumberType type, std::span<float> values);

}  // namespace paceline::runtime
