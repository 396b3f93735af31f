// The best contiguous fusion for one in-order stream, exactly.
//
// Gradients 0 to L - 1 come in backward order, and a plan cuts them into buckets of neighbours. Each
// bucket [i, j) has the cost of the best schedule for it, whatever curve that is: costs need not grow
// with the size, nor be convex. Of all 2^(L-1) plans the one with the least period is found by
//   F(j) = the best states of F(i) after bucket [i, j), over all i < j
// where a state is best if no other one is at most as large in f and in B (stream_clock.h). Since a
// state grows with the state before it, a plan that begins with a worse one is never better. Of plans
// that are equally fast, one with little traffic is taken. With c = 0, F(j) is one number, and the recurrence is that of the design:
//   f(j) = min over i < j of max(ready_j, f(i)) + T(i..j).
// (tests/simulator/fusion_test.cc compares with all plans.)
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "models/base/to_size.h"
#include "simulator/planner/stream_clock.h"

namespace paceline::simulator {

struct FusionOptimum {
  double done_s = 0;          // when the update starts
  std::vector<int> ends;      // of each bucket: one past its last gradient; the last is L
  std::size_t states = 0;     // that were kept, of all gradients
  std::size_t intervals = 0;  // whose cost was asked for
  bool is_exact = true;       // false: states were dropped, because there were too many
};

namespace detail {

// States none of which is at most as large as another in f and B: f rises and B falls. Where traffic
// does not slow computation, only the least f, and the least B that comes with it.
class StateFrontier {
 public:
  struct Entry {
    StreamState state;
    int from = 0;            // the gradient at which the last bucket begins
    std::size_t before = 0;  // the entry of that gradient's frontier
  };

  void add(const Entry& entry, bool is_slowed) {
    auto at = entries_.begin();
    while (at != entries_.end() && at->state.finish_s < entry.state.finish_s) ++at;
    if (!is_slowed && at != entries_.begin()) return;
    if (at != entries_.begin() && std::prev(at)->state.traffic_s <= entry.state.traffic_s) return;
    if (at != entries_.end() && at->state.finish_s == entry.state.finish_s &&
        at->state.traffic_s <= entry.state.traffic_s)
      return;
    auto worse = at;
    while (worse != entries_.end() &&
           (!is_slowed || worse->state.traffic_s >= entry.state.traffic_s))
      ++worse;
    if (worse == at) {
      entries_.insert(at, entry);
      return;
    }
    *at = entry;
    entries_.erase(at + 1, worse);
  }
  // Drops one in the middle where there are more than `most`. False if it did.
  bool keep(std::size_t most) {
    if (entries_.size() <= most) return true;
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(entries_.size() / 2));
    return false;
  }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

// What is still to come after the first i gradients, whatever the buckets of the others are.
struct ToCome {
  double stream_s = 0;   // the least sum of stream times
  double traffic_s = 0;  // the least sum of traffic
  double delay_s = 0;  // the least that slowing by all but the last bucket, and the last one, take
};

template <class Cost>
std::vector<ToCome> to_come(const StreamClock& clock, const Cost& cost) {
  const auto count = static_cast<int>(clock.ready_s.size());
  std::vector<ToCome> least(clock.ready_s.size() + 1);
  for (int first = count - 1; first >= 0; --first) {
    ToCome& here = least[to_size(first)];
    here = {1e300, 1e300, 1e300};
    for (int end = first + 1; end <= count; ++end) {
      const BucketCost bucket = cost(first, end);
      const ToCome& then = least[to_size(end)];
      const double delay_s =
          end == count ? bucket.stream_s : clock.slowing * bucket.traffic_s + then.delay_s;
      here.stream_s = std::min(here.stream_s, bucket.stream_s + then.stream_s);
      here.traffic_s = std::min(here.traffic_s, bucket.traffic_s + then.traffic_s);
      here.delay_s = std::min(here.delay_s, delay_s);
    }
  }
  return least;
}

// When the update starts with the plan that has the least f + weight B at each gradient: a good plan.
template <class Cost>
double good_done_s(const StreamClock& clock, const Cost& cost, double weight) {
  const auto count = static_cast<int>(clock.ready_s.size());
  std::vector<StreamState> best(clock.ready_s.size() + 1);
  for (int end = 1; end <= count; ++end) {
    StreamState& state = best[to_size(end)];
    double least = 1e300;
    for (int first = end - 1; first >= 0; --first) {
      StreamState other = best[to_size(first)].after(
          cost(first, end), clock.ready_s[to_size(end - 1)], clock.slowing);
      const double waits_for_s = end < count ? clock.ready_s[to_size(end)] : clock.computed_s;
      other.finish_s = std::max(other.finish_s, waits_for_s + clock.slowing * other.traffic_s);
      const double value = other.finish_s + weight * other.traffic_s;
      if (value >= least) continue;
      least = value;
      state = other;
    }
  }
  return best.back().done_s(clock);
}

}  // namespace detail

// `cost(first, end)` is the cost of the bucket of gradients [first, end). It is asked for with one of
// both fixed and the other so that sizes rise; always the same for the same bucket. O(L^2) calls, and
// as many times the states of a gradient. States that cannot lead to a plan as good as a good one are
// dropped, by what the gradients after them take at least. Of more than 500 gradients no more than
// eight states are kept each, and the plan may then be worse than the best.
template <class Cost>
[[nodiscard]] FusionOptimum optimal_fusion(const StreamClock& clock, Cost&& cost) {
  const auto count = static_cast<int>(clock.ready_s.size());
  FusionOptimum best;
  std::vector<detail::StateFrontier> frontiers(clock.ready_s.size() + 1);
  frontiers.front().add({}, true);
  const bool is_slowed = clock.slowing > 0;
  const std::size_t most_states = count > 500 ? 8 : frontiers.size() * frontiers.size();
  std::vector<detail::ToCome> to_come(clock.ready_s.size() + 1);
  double enough_s = 1e300;
  if (is_slowed) {
    to_come = detail::to_come(clock, cost);
    for (const double weight : {0.0, 1.0, 2.0, 4.0})
      enough_s = std::min(enough_s, detail::good_done_s(clock, cost, weight * clock.slowing));
    enough_s *= 1 + 1e-12;  // sums in another order
  }
  for (int end = 1; end <= count; ++end) {
    detail::StateFrontier& frontier = frontiers[to_size(end)];
    const double ready_s = clock.ready_s[to_size(end - 1)];
    // No bucket begins before this, so that what was done sooner waits.
    const double waits_for_s = end < count ? clock.ready_s[to_size(end)] : clock.computed_s;
    const detail::ToCome& then = to_come[to_size(end)];
    // Limits of f and B for what leads to a plan that is good enough.
    const double most_finish_s = enough_s - then.stream_s;
    const double most_slowed_s =
        std::min(enough_s - clock.computed_s - clock.slowing * then.traffic_s,
                 end < count ? enough_s - clock.ready_s.back() - then.delay_s : 1e300);
    for (int first = end - 1; first >= 0; --first) {
      const auto& before = frontiers[to_size(first)].entries();
      if (before.empty()) continue;
      const BucketCost bucket = cost(first, end);
      // No state before it starts this bucket earlier than its last gradient is there.
      if (is_slowed && ready_s + bucket.stream_s > most_finish_s) {
        ++best.intervals;
        continue;
      }
      // The frontier is in the order of falling traffic. The last of the states that wait for the
      // last gradient is therefore the best of them.
      std::size_t i = 0;
      while (i + 1 < before.size() && before[i + 1].state.finish_s <=
                                          ready_s + clock.slowing * before[i + 1].state.traffic_s)
        ++i;
      for (; i < before.size(); ++i) {
        StreamState state = before[i].state.after(bucket, ready_s, clock.slowing);
        state.finish_s = std::max(state.finish_s, waits_for_s + clock.slowing * state.traffic_s);
        if (is_slowed &&
            (state.finish_s > most_finish_s || clock.slowing * state.traffic_s > most_slowed_s))
          continue;
        frontier.add({state, first, i}, is_slowed);
        best.is_exact &= frontier.keep(most_states);
      }
      ++best.intervals;
    }
    best.states += frontier.entries().size();
  }
  // All are normalised to when the update starts, and the first starts it soonest.
  best.done_s = frontiers.back().entries().front().state.done_s(clock);
  std::size_t entry = 0;
  for (int end = count; end > 0;) {
    best.ends.push_back(end);
    const auto& last = frontiers[to_size(end)].entries()[entry];
    end = last.from;
    entry = last.before;
  }
  std::reverse(best.ends.begin(), best.ends.end());
  return best;
}

// At most optimal_fusion().done_s: a lower bound for all plans whose buckets are in `is_allowed`,
// without a plan. It takes the least f and the least B of each gradient, whichever states they are of.
template <class Cost, class Allowed>
[[nodiscard]] double least_done_s(const StreamClock& clock, Cost&& cost, Allowed&& allowed) {
  const auto count = static_cast<int>(clock.ready_s.size());
  constexpr double never = 1e300;
  std::vector<StreamState> least(clock.ready_s.size() + 1, {never, never});
  least.front() = {};
  for (int end = 1; end <= count; ++end) {
    StreamState& state = least[to_size(end)];
    const double ready_s = clock.ready_s[to_size(end - 1)];
    const std::pair<int, int> firsts = allowed(end);  // the first, and one past the last
    for (int first = firsts.second - 1; first >= firsts.first; --first) {
      const StreamState& before = least[to_size(first)];
      if (before.finish_s >= never) continue;
      const StreamState after = before.after(cost(first, end), ready_s, clock.slowing);
      state.finish_s = std::min(state.finish_s, after.finish_s);
      state.traffic_s = std::min(state.traffic_s, after.traffic_s);
    }
  }
  return least.back().done_s(clock);
}

// The time at which the update starts with these buckets; `ends` as in FusionOptimum.
template <class Cost>
[[nodiscard]] double done_s(const StreamClock& clock, const std::vector<int>& ends, Cost&& cost) {
  StreamState state;
  int first = 0;
  for (const int end : ends) {
    state = state.after(cost(first, end), clock.ready_s[to_size(end - 1)], clock.slowing);
    first = end;
  }
  return state.done_s(clock);
}

}  // namespace paceline::simulator
