// Tests: tests/simulator/bucket_travel_test.cc.
#include "simulator/iteration/bucket_travel.h"

#include <algorithm>
#include <span>
#include <utility>

#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

bool moves_data(const Task& task) {
  return task.resource == Resource::communication && task.kind != TaskKind::update &&
         task.kind != TaskKind::wait && task.kind != TaskKind::exchange &&
         task.kind != TaskKind::send;
}

// When the forward pass of the steady iteration starts.
Seconds forward_start(const IterationDag& dag, const SteadyIteration& steady, int stage) {
  for (std::size_t i = 0; i < dag.tasks().size(); ++i) {
    const Task& task = dag.tasks()[i];
    if (task.kind == TaskKind::forward && task.stage == stage) return steady.start[i];
  }
  return Seconds{0};
}

// Where the compute stream stands still, from the start of a forward pass to that of the next. The
// iterations before and after compute in it, too, where they overlap.
std::vector<ComputeSpan> idle_spans(std::span<const ComputeSpan> compute, Seconds period) {
  std::vector<std::pair<Seconds, Seconds>> busy;
  for (int shift = -2; shift <= 2; ++shift) {
    for (const ComputeSpan& span : compute)
      busy.emplace_back(span.start + shift * period, span.end + shift * period);
  }
  std::sort(busy.begin(), busy.end());
  std::vector<ComputeSpan> idle;
  // Sums of durations differ by their rounding.
  const Seconds nothing = 1e-9 * period;
  Seconds free{0};
  for (const auto& [start, end] : busy) {
    const Seconds until = std::min(start, period);
    if (until > free + nothing) idle.push_back({TaskKind::wait, -1, free, until});
    free = std::max(free, end);
  }
  if (period > free + nothing) idle.push_back({TaskKind::wait, -1, free, period});
  return idle;
}

Seconds overlap(Seconds start, Seconds end, std::span<const ComputeSpan> idle, Seconds period) {
  Seconds sum;
  for (int shift = -1; shift <= 2; ++shift) {
    for (const ComputeSpan& span : idle)
      sum += std::max(Seconds{0}, std::min(end, span.end + shift * period) -
                                      std::max(start, span.start + shift * period));
  }
  return sum;
}

}  // namespace

PlanTravel plan_travel(const models::Plan& plan, const IterationDag& dag,
                       const SteadyIteration& steady) {
  const std::vector<Task>& tasks = dag.tasks();
  const int stage = busiest_stage(dag);
  const Seconds zero = forward_start(dag, steady, stage);
  PlanTravel travel{.period = steady.period,
                    .buckets = std::vector<BucketTravel>(plan.buckets.size()),
                    .compute = {},
                    .idle = {}};
  // The way of a sharded bucket is that of its gradients, not of its parameters.
  const bool is_sharded = plan.uses<models::ShardUse>() != nullptr;
  const auto travels = [&](const Task& task) {
    return moves_data(task) && !(is_sharded && task.kind == TaskKind::all_gather);
  };
  std::vector<bool> seen(travel.buckets.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Seconds start = steady.start[i] - zero;
    const Seconds end = start + tasks[i].duration;
    const bool computes = tasks[i].resource == Resource::compute && tasks[i].stage == stage;
    if (computes && end > start)
      travel.compute.push_back({tasks[i].kind, tasks[i].index, start, end});
    if (!travels(tasks[i])) continue;
    const auto index = to_size(tasks[i].index);
    BucketTravel& bucket = travel.buckets[index];
    bucket.start = seen[index] ? std::min(bucket.start, start) : start;
    bucket.end = seen[index] ? std::max(bucket.end, end) : end;
    seen[index] = true;
  }
  // A bucket is ready when what it waits for on the compute stream is done.
  for (const Dependency& edge : dag.dependencies()) {
    const Task& to = tasks[to_size(edge.to)];
    const Task& from = tasks[to_size(edge.from)];
    if (edge.lag != 0 || to.resource != Resource::communication ||
        from.resource != Resource::compute || to.kind == TaskKind::update || !travels(to))
      continue;
    Seconds& ready = travel.buckets[to_size(to.index)].ready;
    ready = std::max(ready, steady.finish(dag, edge.from) - zero);
  }
  std::sort(travel.compute.begin(), travel.compute.end(),
            [](const ComputeSpan& a, const ComputeSpan& b) { return a.start < b.start; });
  travel.idle = idle_spans(travel.compute, travel.period);
  for (BucketTravel& bucket : travel.buckets)
    bucket.exposed = overlap(bucket.start, bucket.end, travel.idle, travel.period);
  return travel;
}

}  // namespace paceline::simulator
