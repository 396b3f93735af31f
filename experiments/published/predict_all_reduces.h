// Predicts the single all-reduces of a source.
#pragma once

#include <vector>

#include "experiments/published/result.h"
#include "experiments/published/row_job.h"
#include "experiments/published/source.h"

namespace paceline::experiments {

// Rows of ours for the all-reduces that are not left out, in their order, as `paceline time` times
// them (simulator/iteration/all_reduce_time.h): our algorithms by an engine, trees in the power of
// two of segments up to 256 that is fastest, and NCCL's own with the tables of the version that is
// nearest to the row's library. Rows that calibrate tell the pace of their cluster's links for all
// rows of the same algorithm there (simulator/iteration/measured_all_reduce.h). What cannot be read or timed is thrown as InputError, or, where
// `failed` is not null, listed there.
[[nodiscard]] std::vector<Row> predict_all_reduces(const Source& source, SourceParts& parts,
                                                   int threads, std::vector<RowWithout>* failed);

}  // namespace paceline::experiments
