// How fast one rank's kernels go through memory: copy, cast and reduce. Only the calling rank
// measures.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/profile/profile.h"

namespace paceline::calibration {

// The rates of a copy of FP32, of casts between FP32 and FP16 or BF16 (the mean of both ways), and
// of sums of FP32, FP16 and BF16. Each kernel runs `repetitions` times over `bytes` of the type;
// its figure is the median with its interval (fit/statistics.h), measured. `source` says for people
// where that was.
[[nodiscard]] std::vector<models::CalibratedRate> measure_kernel_rates(std::size_t bytes,
                                                                       int repetitions,
                                                                       const std::string& source);

}  // namespace paceline::calibration
