// Reads the tables that all_reduce_perf of nccl-tests prints, and the JSON that it writes
// (nccl_tests_json.h).
//
// Versions from 2.0 (2018) to 2.19 (2026) are read: with the columns "error" or "#wrong", with and
// without "root", with "res", with percentiles of iterations (-I), with "cputime" (-C), with a
// timestamp (-S), out of place, in place or both, on any number of ranks, and with several tables
// in one file. Lines of other programs (NCCL_DEBUG, mpirun) may stand between.
//
// The times are those in place, as a training step reduces its buckets; where there are none, those
// out of place. Ranks and nodes are counted in the lines "#  Rank  0 ... on HOST device". A row of
// 0 bytes is no all-reduce, and is left out. The facts of the format are from NVIDIA/nccl-tests,
// src/common.cu and doc/PERFORMANCE.md.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_nccl_tests(std::string_view text);

// Returns one curve for each element type. `file` names the text in errors. Throws InputError (with the
// line) if there is no table, a row does not have the columns of its header, a cell is no number,
// the bus bandwidth is not that of an all-reduce over these ranks, or there are more than 100,000
// rows. O(text).
[[nodiscard]] Imported parse_nccl_tests(std::string_view text, const std::string& file);

}  // namespace paceline::calibration
