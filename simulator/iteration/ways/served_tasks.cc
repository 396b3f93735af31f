// Tests: tests/simulator/server_cost_test.cc, tests/simulator/dag_test.cc.
#include "simulator/iteration/ways/served_tasks.h"

#include <algorithm>
#include <utility>

#include "models/base/to_size.h"
#include "simulator/planner/recurrence.h"

namespace paceline::simulator {

ServedTasks::ServedTasks(DagBuilder& dag, const std::vector<int>& order)
    : dag_(dag), order_(order), pushes_(order.size(), -1), pulls_(order.size()) {}

int ServedTasks::add(std::size_t position, int ready) {
  const int bucket = order_[position];
  const models::Bucket& planned = dag_.plan.buckets[to_size(bucket)];
  const ServedPhases& phases = dag_.buckets[to_size(bucket)].served();
  const auto push = push_before_request(phases);
  const Bytes moved = dag_.plan.bytes(planned) /
                      static_cast<double>(std::max<std::ptrdiff_t>(
                          1, std::ranges::count(phases, true, &ServedPhase::runs_as_kernels)));
  for (std::size_t i = 0; i < phases.size() && !phases[i].after_all; ++i) {
    std::vector<int> lanes;
    for (const Occupied& occupied : phases[i].lanes) {
      lanes.push_back(dag_.add_on(dag_.stream_of_lane(occupied.lane), TaskKind::all_reduce, bucket,
                                  occupied.time));
      dag_.tasks.back().runs_as_kernels = phases[i].runs_as_kernels;
      dag_.tasks.back().moved = moved;
      dag_.depend(ready, lanes.back());
    }
    if (push == i) pushes_[position] = lanes.front();
    if (phases[i].is_requested) pulls_[position] = lanes;
    ready = lanes.front();
    if (lanes.size() == 1) continue;
    // Joined on the stream that the bucket has to itself.
    ready = dag_.add_on(dag_.stream_of_bucket(bucket), TaskKind::wait, bucket, Seconds{0});
    for (const int lane : lanes) dag_.depend(lane, ready);
  }
  return ready;
}

void ServedTasks::finish() {
  if (!dag_.plan.dispatch.credit) add_requests();
  add_after_all();
}

// A pull waits for the last push that was queued when it was asked for.
void ServedTasks::add_requests() {
  if (std::find(pushes_.begin(), pushes_.end(), -1) != pushes_.end()) return;
  const std::vector<Seconds> gradients = ready_times(dag_.network, dag_.plan, dag_.compute);
  std::vector<Seconds> ready;
  std::vector<const ServedPhases*> phases;
  Seconds free;  // the stream, of what stands before the phases
  for (const int bucket : order_) {
    const auto b = to_size(bucket);
    const BucketTimes& times = dag_.buckets[b];
    free = std::max(free, gradients[b] + times.wait) + times.negotiation + times.cast + times.pack;
    ready.push_back(free);
    phases.push_back(&times.served());
  }
  const std::vector<std::size_t> last = last_push_before_request(ready, phases);
  for (std::size_t position = 0; position < order_.size(); ++position) {
    for (const int pull : pulls_[position]) dag_.depend(pushes_[last[position]], pull);
  }
}

void ServedTasks::add_after_all() {
  int all = -1;  // once all are through the phase before
  for (std::size_t b = dag_.buckets.size(); b-- > 0;) {
    const ServedPhases& phases = dag_.buckets[b].served();
    auto phase = std::ranges::find(phases, true, &ServedPhase::after_all);
    if (phase == phases.end()) continue;
    const int bucket = static_cast<int>(b);
    const bool in_no_order = phase->in_no_order;
    if (all < 0) {
      all = dag_.add_on(dag_.stream_of_all(), TaskKind::wait, bucket, Seconds{0});
      for (const int done : dag_.delivered) dag_.depend(done, all);
    }
    std::vector<int> before = {all};
    for (; phase != phases.end(); ++phase) {
      std::vector<int> lanes;
      for (const Occupied& occupied : phase->lanes) {
        lanes.push_back(dag_.add_on(dag_.stream_of_lane(occupied.lane), TaskKind::all_reduce,
                                    bucket, occupied.time));
        for (const int done : before) dag_.depend(done, lanes.back());
      }
      before = std::move(lanes);
    }
    const models::Bucket& part = dag_.plan.buckets[b];
    for (int i = 0; i < part.gradient_count; ++i) {
      const auto gradient = to_size(part.first_gradient + i);
      const auto layer = to_size(dag_.network.gradients[gradient].layer);
      for (const int done : before) dag_.depend(done, dag_.forward[in_no_order ? 0 : layer], 1);
    }
  }
}

}  // namespace paceline::simulator
