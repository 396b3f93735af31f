// Tests: tests/cli/predict_test.py, tests/cli/report_test.py.
#include "cli/job/plan_timeline.h"

#include <fmt/core.h>

#include "simulator/iteration/timeline.h"

namespace paceline::job {

models::TracedTimeline traced_timeline(const PredictionTable& table, const models::Plan& plan,
                                       const std::string& name) {
  simulator::Predictor predictor(table.job.request(table.network, table.ranks, plan.wire));
  const simulator::StrategyRun run = predictor.run(plan);
  const std::string title = fmt::format(
      "{} on {}, {} ranks, batch {}, {}, {} on the wire", table.network.work.name,
      table.job.cluster.name, table.ranks, table.job.batch_per_rank, name, models::name(plan.wire));
  models::TracedTimeline traced{models::traced_job(table.network.work, run.plan),
                                simulator::predicted_timeline(run, title)};
  traced.timeline.batch_per_rank = table.job.batch_per_rank;
  return traced;
}

std::string plan_timeline(const PredictionTable& table, const models::Plan& plan,
                          const std::string& name) {
  return models::chrome_trace({traced_timeline(table, plan, name)});
}

std::string best_timeline(const PredictionTable& table) {
  const simulator::StrategyPrediction& row = table.rows[table.best()];
  return plan_timeline(table, row.plan, row.name);
}

}  // namespace paceline::job
