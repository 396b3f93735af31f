// Tests: tests/simulator/planner_test.cc, tests/simulator/dag_test.cc.
#include "simulator/planner/recurrence.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::simulator {

std::vector<Seconds> gradient_times(const models::NetworkWork& network,
                                    const ComputeTimes& compute) {
  Seconds now;
  for (const LayerTime& layer : compute.layers) now += layer.forward;
  std::vector<Seconds> done(compute.layers.size());
  for (std::size_t i = compute.layers.size(); i-- > 0;) {
    now += compute.layers[i].backward;
    done[i] = now;
  }
  std::vector<Seconds> times;
  times.reserve(network.gradients.size());
  for (const models::Gradient& gradient : network.gradients)
    times.push_back(done[to_size(gradient.layer)]);
  return times;
}

std::vector<Seconds> ready_times(const models::NetworkWork& network, const models::Plan& plan,
                                 const ComputeTimes& compute) {
  const std::vector<Seconds> gradients = gradient_times(network, compute);
  const Seconds end_of_backward = compute.total() - compute.update;
  std::vector<Seconds> ready;
  ready.reserve(plan.buckets.size());
  for (const models::Bucket& bucket : plan.buckets) {
    const auto last = to_size(bucket.first_gradient + bucket.gradient_count - 1);
    ready.push_back(plan.overlap == models::Overlap::none ? end_of_backward : gradients[last]);
  }
  return ready;
}

Seconds last_finish(std::span<const Seconds> ready, std::span<const Seconds> durations) {
  PACELINE_ASSERT(ready.size() == durations.size(), "every bucket has its time");
  Seconds finish;
  for (std::size_t i = 0; i < ready.size(); ++i) finish = std::max(ready[i], finish) + durations[i];
  return finish;
}

int CreditWindow::room_after(std::size_t position) {
  if (!credit_) return -1;
  for (; counted_ < position; ++counted_) held_ += sizes_[counted_];
  while (done_ < position && held_ > Bytes{0} && held_ >= *credit_) held_ -= sizes_[done_++];
  return static_cast<int>(done_) - 1;
}

std::vector<int> priority_order(std::span<const Seconds> ready, std::span<const Seconds> durations,
                                std::span<const int> priorities, const HandedOver& handed_over) {
  std::vector<int> by_time(ready.size());
  std::iota(by_time.begin(), by_time.end(), 0);
  const auto at = [](int bucket) { return to_size(bucket); };
  std::stable_sort(by_time.begin(), by_time.end(),
                   [&](int a, int b) { return ready[at(a)] < ready[at(b)]; });
  const auto less_urgent = [&](int a, int b) {
    return std::pair(priorities[at(a)], a) > std::pair(priorities[at(b)], b);
  };
  std::priority_queue<int, std::vector<int>, decltype(less_urgent)> there(less_urgent);

  std::vector<int> order;
  std::vector<Bytes> sizes;
  std::vector<Seconds> finish;
  Seconds now;
  for (auto next = by_time.begin(); order.size() < ready.size();) {
    int room = static_cast<int>(order.size()) - 1;
    Bytes held{0};
    while (!handed_over.sizes.empty() && room >= 0 && held + sizes[at(room)] < handed_over.credit)
      held += sizes[at(room--)];
    if (room >= 0) now = std::max(now, finish[at(room)]);
    if (there.empty() && ready[at(*next)] > now) now = ready[at(*next)];
    for (; next != by_time.end() && ready[at(*next)] <= now; ++next) there.push(*next);
    const int bucket = there.top();
    there.pop();
    const Seconds wait = handed_over.waits.empty() ? Seconds{0} : handed_over.waits[at(bucket)];
    const Seconds free = finish.empty() ? Seconds{0} : finish.back();
    finish.push_back(std::max(now + wait, free) + durations[at(bucket)]);
    sizes.push_back(handed_over.sizes.empty() ? Bytes{0} : handed_over.sizes[at(bucket)]);
    order.push_back(bucket);
  }
  return order;
}

}  // namespace paceline::simulator
