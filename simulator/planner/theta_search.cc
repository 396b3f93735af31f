// Tests: tests/simulator/fusion_test.cc.
#include "simulator/planner/theta_search.h"

#include <algorithm>
#include <cmath>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "simulator/planner/optimal_fusion.h"

namespace paceline::simulator {
namespace {

class Search {
 public:
  Search(const StreamClock& clock, const std::vector<std::int64_t>& sums, const IntervalCost& cost,
         double tolerance, int most_tried)
      : clock_(clock), sums_(sums), cost_(cost), tolerance_(tolerance), most_tried_(most_tried) {
    search_.best.done_s = 1e300;
  }

  void offer(ThetaOutcome outcome) {
    if (outcome.done_s < search_.best.done_s) search_.best = std::move(outcome);
  }

  // No theta of the range is better than what is found by more than the tolerance, or it is found.
  // `known_s` is a bound of the range, where there is one.
  void look_into(std::int64_t low, std::int64_t high, std::optional<double> known_s = {}) {
    if (low > high) return;
    if (search_.tried >= most_tried_) {
      search_.is_complete = false;
      return;
    }
    const double least_s = known_s ? *known_s : bound(low, high);
    if (least_s >= enough_s()) return passed_over(least_s);
    ThetaOutcome outcome = outcome_of_theta(clock_, sums_, cost_, low);
    ++search_.tried;
    low = outcome.up_to + 1;
    offer(std::move(outcome));
    if (low > high) return;
    const auto middle = std::clamp(
        static_cast<std::int64_t>(std::sqrt(static_cast<double>(low) * static_cast<double>(high))),
        low, high);
    look_into(low, middle);
    look_into(middle + 1, high);
  }

  ThetaSearch result() {
    search_.least_done_s = search_.is_complete ? std::min(passed_over_s_, search_.best.done_s) : 0;
    return std::move(search_);
  }

 private:
  [[nodiscard]] double enough_s() const {
    return search_.best.done_s - tolerance_ * (search_.best.done_s + clock_.update_s);
  }
  void passed_over(double least_s) { passed_over_s_ = std::min(passed_over_s_, least_s); }

  // The recurrence over the buckets that some theta of the range makes.
  [[nodiscard]] double bound(std::int64_t low, std::int64_t high) const {
    const auto count = static_cast<int>(sums_.size()) - 1;
    int first = 0;       // of the buckets that hold less than `high` without their last gradient
    int first_free = 0;  // of those that hold less than `low`
    const auto at = [&](int i) { return sums_[to_size(i)]; };
    const auto allowed = [&](int end) {
      while (first < end - 1 && at(end - 1) - at(first) >= high) ++first;
      while (first_free < end && at(end) - at(first_free) >= low) ++first_free;
      return std::pair(first, end == count ? end : std::max(first, first_free));
    };
    return simulator::least_done_s(clock_, cost_, allowed);
  }

  const StreamClock& clock_;
  const std::vector<std::int64_t>& sums_;
  const IntervalCost& cost_;
  double tolerance_;
  int most_tried_;
  ThetaSearch search_;
  double passed_over_s_ = 1e300;  // the least bound of ranges that were not looked into
};

}  // namespace

ThetaOutcome outcome_of_theta(const StreamClock& clock, const std::vector<std::int64_t>& sums,
                              const IntervalCost& cost, std::int64_t theta_elements) {
  const auto count = static_cast<int>(sums.size()) - 1;
  ThetaOutcome outcome;
  outcome.elements = theta_elements;
  outcome.up_to = std::max(theta_elements, sums.back());
  StreamState state;
  for (int first = 0, end = 1; end <= count; ++end) {
    const std::int64_t elements = sums[to_size(end)] - sums[to_size(first)];
    if (elements < theta_elements && end < count) continue;
    if (end < count) outcome.up_to = std::min(outcome.up_to, elements);
    state = state.after(cost(first, end), clock.ready_s[to_size(end - 1)], clock.slowing);
    outcome.ends.push_back(end);
    first = end;
  }
  outcome.done_s = state.done_s(clock);
  return outcome;
}

ThetaSearch best_theta(const StreamClock& clock, const std::vector<std::int64_t>& sums,
                       const IntervalCost& cost, double tolerance,
                       const std::vector<ThetaOutcome>& tried, int most_tried,
                       std::optional<double> least_done_s) {
  PACELINE_ASSERT(sums.size() == clock.ready_s.size() + 1, "every gradient has its elements");
  Search search(clock, sums, cost, tolerance, most_tried);
  for (const ThetaOutcome& outcome : tried) search.offer(outcome);
  search.look_into(1, std::max<std::int64_t>(1, sums.back()), least_done_s);
  return search.result();
}

double round_theta_bytes(std::int64_t elements, std::int64_t up_to, double element_bytes) {
  const double low = static_cast<double>(elements - 1) * element_bytes;  // reaches fewer
  const double high = static_cast<double>(up_to) * element_bytes;
  for (double step = std::exp2(40); step >= 1; step /= 2) {
    const double multiple = std::floor(high / step) * step;
    if (multiple > low) return multiple;
  }
  return high;
}

}  // namespace paceline::simulator
