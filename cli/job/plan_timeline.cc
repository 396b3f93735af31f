// Tests: tests/cli/predict_test.py, tests/cli/report_test.py.
#include "cli/job/plan_timeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "simulator/prediction/timeline.h"

namespace paceline::job {

namespace {

models::TracedTimeline traced(const PredictionTable& table, const simulator::StrategyRun& run,
                              const std::string& name) {
  const std::string title =
      fmt::format("{} on {}, {} ranks, batch {}, {}, {} on the wire", table.network.work.name,
                  table.job.cluster.name, table.ranks, table.job.question.batch_per_rank, name,
                  models::name(run.plan.wire));
  models::TracedTimeline traced{models::traced_job(table.network.work, run.plan),
                                simulator::predicted_timeline(run, title)};
  traced.timeline.batch_per_rank = table.job.question.batch_per_rank;
  return traced;
}

models::TracedTimeline traced(const PredictionTable& table, const models::Plan& plan,
                              const std::string& name) {
  simulator::Predictor predictor(table.job.request(table.network, table.ranks, plan.wire));
  return traced(table, predictor.run(plan), name);
}

}  // namespace

models::TracedTimeline row_timeline(const PredictionTable& table,
                                    const simulator::StrategyPrediction& row) {
  constexpr double rounding = 1e-9;
  models::TracedTimeline result =
      row.run != nullptr ? traced(table, *row.run, row.name) : traced(table, row.plan, row.name);
  const Figure<Seconds>& iteration = row.iteration;
  if (std::abs(iteration.value / result.timeline.period - 1) < rounding)
    result.timeline.interval = {std::min(iteration.low, result.timeline.period),
                                std::max(iteration.high, result.timeline.period)};
  return result;
}

std::string best_timeline(const PredictionTable& table) {
  return models::chrome_trace({row_timeline(table, table.rows[table.best()])});
}

std::string plan_timeline(const PredictionTable& table, const models::Plan& plan,
                          const std::string& name) {
  return models::chrome_trace({traced(table, plan, name)});
}

}  // namespace paceline::job
