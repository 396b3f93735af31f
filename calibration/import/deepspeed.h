// Reads what DeepSpeed's communication logger prints: the table of deepspeed.comm.log_summary(), or
// where there is none the lines of its "verbose" setting.
//
// Times are those of a training job's calls with a synchronisation around each, as Python sees them:
// they have its overhead, and the wait for the last rank. The table with the straggler effect, where
// there is one, has the least time over the ranks, and is taken in place of the other. Tables count
// from the beginning of the job, so that the last one is read. Of calls of one size a table has the
// trimmed mean; of lines the median is taken.
//
// Sizes are those of the tensor that a call was given: of an all-reduce, a reduce-scatter, a broadcast,
// a reduce and an all-to-all all of it, of an all-gather a rank's part. DeepSpeed before 2023 logged
// an all-gather's result; its throughput tells the two apart, and all-gathers of such logs are left out.
// Nothing says the ranks of a call's group, or its type; the ratio of the two throughputs tells the ranks
// of the job, which are the most that a group has. The format is that of
// deepspeed/utils/comms_logging.py.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_deepspeed(std::string_view text);

// Throws InputError (with the line) if a row has other columns than such a table, if a cell is no
// number, if no call of a collective was logged, or after 100,000 rows. O(n log n) for n rows.
[[nodiscard]] Imported parse_deepspeed(std::string_view text, const std::string& file);

}  // namespace paceline::calibration
