// Tests: tests/simulator/prediction_test.cc.
#include "simulator/prediction/strategy_run.h"

#include <utility>

#include "simulator/iteration/plan_timing.h"

namespace paceline::simulator {

PlanAt plan_at(const JobSettings& job, const models::Plan& plan, TimingMethod method,
               PredictorSetting& at) {
  const PredictionRequest& request = job.request();
  return {request.network, request.cluster, request, plan, method, at};
}

StrategyRun run_of(const JobSettings& job, models::Plan plan, PredictorSetting& at) {
  const PredictionRequest& request = job.request();
  const TimingMethod method = timing_method(plan, at.engine, request.time_budget);
  const std::vector<BucketTimes> buckets = model_of(plan).times(plan_at(job, plan, method, at));
  PlanTimer timer(plan, method, at.engine.cost());
  const auto timed_with = [&](const ComputeTimes& compute) {
    IterationDag dag(request.network, plan, compute, buckets, at.input);
    return timer.timed(std::move(dag));
  };
  ComputeTimes compute = model_of(plan).with_tasks(plan_at(job, plan, method, at), at.compute);
  if (compute.layout.is_pipeline()) compute.layout.passes = compute.layers;
  TimedIteration iteration{timed_with(compute), {}};
  iteration.steady = steady_state(iteration.dag);
  const bool slows =
      plan.ranks > 1 && !at.compute.beside_traffic.empty() && !request.compute_is_exact;
  if (slows) iteration = stretched(std::move(iteration), compute, timed_with);
  std::string timed_by = model_of(plan).timed_by(plan_at(job, plan, method, at));
  return {
      std::move(plan),     std::move(iteration.dag), std::move(iteration.steady), method, buckets,
      std::move(timed_by), at.compute.source};
}

}  // namespace paceline::simulator
