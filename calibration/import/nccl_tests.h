// Reads the tables that the programs of nccl-tests print (all_reduce_perf, all_gather_perf,
// reduce_scatter_perf, alltoall_perf, broadcast_perf, reduce_perf), and the JSON that they write
// (nccl_tests_json.h). Sizes are those of the column "size".
//
// Versions from 2.0 (2018) to 2.19 (2026) are read: with the columns "error" or "#wrong", with and
// without "root", with "res", with percentiles of iterations (-I), with "cputime" (-C), with a
// timestamp (-S), out of place, in place or both, on any number of ranks, and with several tables
// in one file. Lines of other programs (NCCL_DEBUG, mpirun) may stand between.
//
// The times are those in place, as a training step reduces its buckets; where there are none, and of an
// all-to-all, those out of place. Ranks and nodes are counted in the lines "#  Rank  0 ... on HOST device".
// A row of 0 bytes is left out. The facts of the format are from NVIDIA/nccl-tests,
// src/common.cu and doc/PERFORMANCE.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_nccl_tests(std::string_view text);

// Returns one curve for each collective and element type. `file` names the text in errors, and `stated` is
// the collective of tables that do not say it. Throws InputError (with the line) if there is no table, a row
// does not have the columns of its header, a cell is no number, a table leaves open which collective it is
// of, the bus bandwidth is not that of the collective over these ranks, or there are more than 100,000
// rows. O(text).
[[nodiscard]] Imported parse_nccl_tests(std::string_view text, const std::string& file,
                                        std::optional<models::Collective> stated = {});

}  // namespace paceline::calibration
