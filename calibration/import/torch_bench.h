// Reads the table of all_reduce_bench.py, the benchmark of torch.distributed in stas00/ml-engineering:
//
//   The average bandwidth of all_reduce over 16 ranks (5 warmups / 20 trials):
//   |payload|    busbw   |    algbw   |
//   |    4GB| 361.90GBps| 193.01GBps|
//
// Payloads are in units of 1024 (the script doubles them), bandwidths in units of 1000. The time is the
// payload over algbw, so that it has the two decimals of that. The elements are FP32. Nothing says on
// how many nodes the ranks were.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_torch_bench(std::string_view text);

// Throws InputError, which names the line, in these cases: the text has no such table; the table measures
// another collective; a cell is not a payload or a bandwidth; busbw does not fit an all-reduce over these
// ranks. O(text).
[[nodiscard]] Imported parse_torch_bench(std::string_view text, const std::string& file);

}  // namespace paceline::calibration
