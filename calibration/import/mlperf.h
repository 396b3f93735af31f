// Reads the log of an MLPerf training run: lines ":::MLLOG {...}" of mlperf_logging, of round 0.7
// (2020) to 6.0 (2026), and lines ":::MLL 1556733699.710 run_start: {...}" of round 0.6 (2019), with
// whatever stands before the mark and between the lines. The same event twice in a row is one.
//
// The result is the throughput of the run: samples over the time from run_start to run_stop
// without the time of evaluations (eval_start to eval_stop). Where the log has two or more blocks or
// epochs whose samples are known, it is the median over them, each likewise without evaluations.
// Samples are told, in this order, by
//
//   1. "epoch_count" of block_start, or a pair of epoch_start and epoch_stop, times train_samples;
//      an epoch whose stop has a fraction as "epoch_num" counts as that part of it, and the stop of
//      the run is the stop of its epoch, if it has an "epoch_num";
//      an "epoch_count" above 1000 is of samples, if its block then has the throughput that
//      tracked_stats states;
//   2. "samples_count" in the metadata of block_start and block_stop, or of any event of the run;
//   3. "epoch_num" in the metadata of any event, which language models use for samples: so it is read
//      if it is above 1000 and no more than train_samples.
//
// A log does not say on how many ranks the run was. The facts of the format are from
// mlcommons/logging, mlperf_logging/mllog.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_mlperf(std::string_view text);

// Throws InputError (with the line) if an event is no JSON or has no key or time, run_start or
// run_stop is missing or stands twice, the run ends before it starts, or its samples are not told.
[[nodiscard]] Imported parse_mlperf(std::string_view text, const std::string& file);

}  // namespace paceline::calibration
