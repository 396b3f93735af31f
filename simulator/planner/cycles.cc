// Tests: tests/simulator/cycles_test.cc.
#include "simulator/planner/cycles.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "models/base/error.h"
#include "simulator/cost/dispatch_cost.h"
#include "simulator/planner/merged_gradients.h"
#include "simulator/planner/recurrence.h"

namespace paceline::simulator {
namespace {

constexpr int phases = 33;  // odd, so that one of them is the middle

struct Cycles {
  std::vector<models::Bucket> buckets;
  Seconds finish;
};

// `tick` is one of the times at which a cycle may start, not after the first gradient.
Cycles run_cycles(std::span<const models::Gradient> gradients, std::span<const Seconds> times,
                  const models::Dispatch& dispatch, std::int64_t theta, Seconds tick,
                  const std::function<Seconds(const models::Bucket&)>& takes) {
  Cycles run;
  for (std::size_t next = 0; next < gradients.size();) {
    const double cycles_until_there = std::ceil((times[next] - tick) / dispatch.cycle - 1e-9);
    if (cycles_until_there > 0) tick += cycles_until_there * dispatch.cycle;
    const Seconds start = std::max(tick, run.finish);
    run.finish = start;
    while (next < gradients.size() && times[next] <= start + 1e-9 * dispatch.cycle) {
      models::Bucket bucket{.first_gradient = static_cast<int>(next)};
      do {
        bucket.elements += gradients[next].elements;
        ++bucket.gradient_count;
        ++next;
      } while (next < gradients.size() && times[next] <= start + 1e-9 * dispatch.cycle &&
               bucket.elements + gradients[next].elements <= theta);
      bucket.wait = std::max(Seconds{0}, tick - times[next - 1]);
      run.buckets.push_back(bucket);
      run.finish += takes(bucket);
    }
    const bool counts_from_end = dispatch.negotiation == models::Negotiation::messages;
    tick = (counts_from_end ? run.finish : start) + dispatch.cycle;
  }
  return run;
}

// When each gradient may travel.
std::vector<Seconds> gradients_there(const models::NetworkWork& network, const models::Plan& plan,
                                     const ComputeTimes& compute) {
  std::vector<Seconds> times = gradient_times(network, compute);
  if (plan.overlap == models::Overlap::none)
    std::fill(times.begin(), times.end(), compute.total() - compute.update);
  return times;
}

}  // namespace

std::vector<models::Bucket> buckets_of_cycles(
    std::span<const models::Gradient> gradients, std::span<const Seconds> times,
    const models::Dispatch& dispatch, Bytes theta, Bytes element_size,
    const std::function<Seconds(const models::Bucket&)>& takes) {
  PACELINE_ASSERT(gradients.size() == times.size(), "every gradient has its time");
  PACELINE_ASSERT(dispatch.cycle > Seconds{0}, "a cycle takes time");
  if (gradients.empty()) return {};
  const double most = std::min(theta / element_size, 1e18);
  std::vector<Cycles> runs;
  Seconds sum;
  const double before = std::ceil((times.back() - times.front()) / dispatch.cycle) + 1;
  for (int phase = 0; phase < phases; ++phase) {
    const double after_last = (phase + 0.5) / phases;
    runs.push_back(run_cycles(gradients, times, dispatch, static_cast<std::int64_t>(most),
                              times.back() + (after_last - before) * dispatch.cycle, takes));
    sum += runs.back().finish;
  }
  const Seconds mean = sum / phases;
  const auto distance = [&](const Cycles& run) { return std::abs((run.finish - mean).value()); };
  constexpr double rounding_s = 1e-12;
  const Cycles* best = &runs.front();
  for (const Cycles& run : runs) {
    if (distance(run) < distance(*best) - rounding_s) best = &run;
  }
  return best->buckets;
}

models::Plan make_timed_plan(const models::Strategy& strategy, const models::NetworkWork& network,
                             int ranks, models::WireType wire, const models::Thresholds& thresholds,
                             std::optional<models::Overlap> overlap, const ComputeTimes& compute,
                             BucketTimer timer) {
  models::Plan plan = models::make_plan(strategy, network.gradients, ranks, wire, thresholds);
  plan.overlap = models::overlap_of(strategy, overlap);
  models::check_overlap(strategy, plan.overlap);
  const models::Dispatch& dispatch = plan.dispatch;
  if (strategy.other && strategy.other->system == models::System::mg_wfbp && ranks > 1) {
    constexpr std::int64_t one = 1;
    const auto takes = [&](std::int64_t elements) {
      return timer.time(plan.schedules.front(),
                        static_cast<double>(elements) * models::element_size(wire));
    };
    plan.buckets = merged_gradients(network.gradients, gradients_there(network, plan, compute),
                                    takes(one), takes);
    return plan;
  }
  if (!strategy.other || dispatch.cycle == Seconds{0} || ranks == 1) return plan;
  if (thresholds.partition > Bytes{0}) {
    // Parts are handed over by themselves, whenever there is room, and each meets some cycle.
    for (models::Bucket& bucket : plan.buckets) bucket.wait = 0.5 * dispatch.cycle;
    return plan;
  }
  const std::vector<Seconds> times = gradients_there(network, plan, compute);
  std::map<std::pair<std::int64_t, int>, Seconds> known;
  const auto takes = [&](const models::Bucket& bucket) {
    const auto [entry, is_new] = known.try_emplace({bucket.elements, bucket.gradient_count});
    if (!is_new) return entry->second;
    const Bytes bytes = plan.bytes(bucket);
    Seconds time = negotiation_time(dispatch.negotiation, ranks, bucket.gradient_count,
                                    timer.cost(), Bound::stated);
    if (dispatch.through_host) {
      const HostWay way = host_way(bytes, ranks, Bound::stated);
      time += 2 * way.copy + way.sum;
      time += (way.messages - 1) * timer.time(plan.schedules.front(), bytes);
    }
    time += timer.time(plan.schedules.front(), bytes);
    return entry->second = time;
  };
  plan.buckets = buckets_of_cycles(network.gradients, times, dispatch, thresholds.fusion,
                                   models::element_size(wire), takes);
  return plan;
}

}  // namespace paceline::simulator
