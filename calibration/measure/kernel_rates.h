// How fast one rank's kernels go through memory: copy, cast, reduce. On this rank alone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/profile/profile.h"

namespace paceline::calibration {

// Copy of FP32; cast between FP32 and FP16, BF16 (both ways, the mean); sum of FP32, FP16, BF16.
// Each over `bytes` of the type, `repetitions` times: the median, and the quartiles as interval.
// `source` says where, for people.
[[nodiscard]] std::vector<models::CalibratedRate> measure_kernel_rates(std::size_t bytes,
                                                                       int repetitions,
                                                                       const std::string& source);

}  // namespace paceline::calibration
