// The rows of a table of predictions, run one behind the other with synthetic compute.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/job/prediction_table.h"
#include "models/base/document.h"
#include "runtime/channel/endpoint.h"
#include "runtime/replay/replay.h"

namespace paceline::job {

struct ReplayRun {
  models::Plan plan;
  runtime::ReplayOutcome outcome;  // as this rank measured it
};

struct ReplaySettings {
  int iterations = 5;  // that are measured, of each plan
  int warm_up = 1;     // before those
  runtime::Recorder* recorder = nullptr;
  double slowness = 1;  // how many times as long as predicted this rank sleeps
  // Called on rank 0 before each run.
  std::function<void(std::size_t run)> begin = {};
};

// All ranks call it. Rank 0 has the table, the others null: it tells them the plans of its rows and
// how long their layers sleep, which is what the predictions take. Returns a run for each row, in
// their order. Throws InputError where a rank has another network than rank 0; else as
// runtime::replay.
[[nodiscard]] std::vector<ReplayRun> replay_plans(const Job& job, const runtime::Endpoint& endpoint,
                                                  const PredictionTable* table,
                                                  const ReplaySettings& settings);

// What rank 0 measured beside what was predicted, row by row.
struct ReplayResult {
  const PredictionTable& table;
  const std::vector<ReplayRun>& runs;
  std::string_view transport;
};
[[nodiscard]] const Document<ReplayResult>& replay_document();

}  // namespace paceline::job
