// Tests: tests/simulator/planner_test.cc, tests/simulator/fusion_test.cc.
#include "simulator/planner/threshold_ways.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/catalogue.h"
#include "simulator/engine/effort.h"
#include "simulator/engine/prepare.h"
#include "simulator/planner/optimal_fusion.h"
#include "simulator/planner/theta_search.h"

namespace paceline::simulator {
namespace {

constexpr double tolerance = 2e-4;  // to which the best theta is found
constexpr double as_good = 1.0009;  // with the tolerance and the curves' accuracy: 0.1 %
constexpr double alike = 1.001;     // what is said to be no worse
constexpr double worth_timing = 1.03;
constexpr std::size_t most_timed = 4;

// The all-reduces of one way: k and segments, and a curve for each algorithm.
struct Way {
  models::Thresholds thresholds;
  models::PlannedSchedule small;
  std::optional<models::PlannedSchedule> large;  // of a hybrid
  SizeCurve small_curve;
  SizeCurve large_curve;
  SizeCurve curve;      // as eta joins them
  ThetaOutcome best;    // by the search's timer
  double period_s = 0;  // of it, by the search's timer
  double timed_s = 0;   // by the timer of the plan, where that was asked; else period_s
};

class Ways {
 public:
  Ways(const models::Strategy& strategy, const ThresholdRequest& asked, const PlanningJob& job,
       const PlanningTimers& timers, const models::Thresholds& chosen)
      : strategy_(strategy),
        asked_(asked),
        job_(job),
        timers_(timers),
        chosen_(chosen),
        sums_(element_sums(job.network.gradients)),
        element_bytes_(models::element_size(job.wire).value()) {
    std::int64_t least = sums_.back();
    for (const models::Gradient& gradient : job.network.gradients)
      least = std::min(least, gradient.elements);
    least_bytes_ = static_cast<double>(std::max<std::int64_t>(1, least)) * element_bytes_;
    whole_bytes_ = std::max(least_bytes_, static_cast<double>(sums_.back()) * element_bytes_);
  }

  void choose(ChosenThresholds& result) {
    if (asked_.fusion)
      fixed_theta_ = elements_of(*asked_.fusion);
    else if (strategy_.fusion != models::Fusion::by_default)
      fixed_theta_ = 0;
    make_ways();
    if (!fixed_theta_) look_for_theta();
    if (timers_.timed) time_the_best();
    const double limit_s = as_good * least_timed_s();
    auto way = std::find_if(ways_.begin(), ways_.end(), [&](const Way& w) {
      return w.thresholds.group_size == chosen_.group_size && w.timed_s <= limit_s &&
             !strategy_.takes_segments();
    });
    if (way == ways_.end())
      way = std::min_element(ways_.begin(), ways_.end(),
                             [](const Way& a, const Way& b) { return a.timed_s < b.timed_s; });
    result.thresholds = way->thresholds;
    result.thresholds.fusion = theta_of(*way, limit_s);
    result.period = Seconds{way->timed_s};
    result.least_period = Seconds{least_s_ + job_.clock.update_s};
    for (const Way& other : ways_) {
      if (&other == &*way || other.timed_s > alike * least_timed_s()) continue;
      if (strategy_.takes_group())
        result.alike_groups.push_back(other.thresholds.group_size);
      else if (strategy_.takes_segments())
        result.alike_segments.push_back(other.thresholds.segments);
    }
    std::sort(result.alike_groups.begin(), result.alike_groups.end());
    std::sort(result.alike_segments.begin(), result.alike_segments.end());
  }

 private:
  [[nodiscard]] std::int64_t elements_of(Bytes theta) const {
    return static_cast<std::int64_t>(std::ceil(std::min(theta.value() / element_bytes_, 1e15)));
  }
  [[nodiscard]] double period_s(double done_s) const { return done_s + job_.clock.update_s; }
  [[nodiscard]] IntervalCost cost(const SizeCurve& curve) const {
    return {sums_, element_bytes_, curve, job_.aside, job_.slows, job_.clock.load};
  }
  [[nodiscard]] ThetaOutcome outcome(const Way& way, std::int64_t theta) const {
    return outcome_of_theta(job_.clock, sums_, cost(way.curve), theta);
  }

  [[nodiscard]] models::PlannedSchedule planned(std::string_view algorithm,
                                                const models::Thresholds& thresholds) const {
    return models::scheduled(algorithm, {.ranks = job_.ranks,
                                         .group_size = thresholds.group_size,
                                         .segments = thresholds.segments,
                                         .rings = thresholds.rings,
                                         .servers = 1});
  }

  [[nodiscard]] SizeCurve curve_of(const models::PlannedSchedule& schedule) const {
    const auto time = [&](double bytes) {
      return timers_.search.time(schedule, Bytes{bytes}).value();
    };
    constexpr double accuracy = 1e-5;
    constexpr int samples = 400;
    if (job_.ranks == 1) return SizeCurve({{least_bytes_, 0, 0, 0}});
    return schedule.has_steps() ? convex_pieces(time, least_bytes_, whole_bytes_, accuracy)
                                : sampled_pieces(time, least_bytes_, whole_bytes_, samples);
  }

  // What a strategy does where it calls a library, or takes one algorithm or two.
  void make_schedules(Way& way) const {
    if (const auto library = strategy_.library()) {
      way.small = models::called(*library, job_.ranks);
      return;
    }
    const std::vector<std::string_view> algorithms = strategy_.algorithms();
    way.small = planned(algorithms.front(), way.thresholds);
    if (algorithms.size() > 1) way.large = planned(algorithms.back(), way.thresholds);
  }

  // Adds the way if its schedules can be prepared in time, or somebody named it. False where not.
  bool add(models::Thresholds thresholds, bool is_named) {
    Way way;
    way.thresholds = thresholds;
    make_schedules(way);
    const auto is_too_much = [&](const models::PlannedSchedule& schedule) {
      return !strategy_.takes_segments() && schedule.has_steps() &&
             followed_messages(schedule.schedule(), timers_.search.cost()) > job_.most_prepared;
    };
    if (!is_named && (is_too_much(way.small) || (way.large && is_too_much(*way.large))))
      return false;
    try {
      way.small_curve = curve_of(way.small);
      if (way.large) way.large_curve = curve_of(*way.large);
    } catch (const TooManyMessages&) {
      if (is_named) throw;
      return false;
    }
    join(way);
    ways_.push_back(std::move(way));
    return true;
  }

  // The sizes at which the algorithm for small buckets stops being the faster one. For buckets of any
  // sizes one of them is the best eta: from another one to the nearest of these, no bucket gets slower.
  [[nodiscard]] std::vector<double> etas(const Way& way) const {
    std::set<double> sizes = {least_bytes_, whole_bytes_};
    for (const SizeCurve* curve : {&way.small_curve, &way.large_curve})
      for (const SizeCurve::Piece& piece : curve->pieces())
        if (piece.from_bytes > least_bytes_ && piece.from_bytes < whole_bytes_)
          sizes.insert(piece.from_bytes);
    const auto more = [&](double bytes) {  // of the time by the algorithm for small buckets
      return way.small_curve.at(bytes) - way.large_curve.at(bytes);
    };
    std::vector<double> found;
    double from = least_bytes_;
    double at_from = more(from);
    if (at_from > 0) found.push_back(0);
    for (const double to : sizes) {
      const double at_to = more(to);
      if (at_from <= 0 && at_to > 0)
        found.push_back(from + (to - from) * (at_from / (at_from - at_to)));
      from = to;
      at_from = at_to;
    }
    if (at_from <= 0) found.push_back(whole_bytes_);
    return found;
  }

  // Sets eta and the curve that it makes, and what the best of round theta or the only one does.
  void join(Way& way) {
    if (!way.large) {
      way.curve = way.small_curve;
      return try_theta(way);
    }
    const Bytes defined = strategy_.hybrid()->threshold;
    std::vector<double> all = asked_.hybrid        ? std::vector{asked_.hybrid->value()}
                              : defined > Bytes{0} ? std::vector{defined.value()}
                                                   : etas(way);
    std::optional<Way> best;
    for (const double eta : all) {
      Way with = way;
      with.thresholds.hybrid = Bytes{eta};
      with.curve = joined(way.small_curve, way.large_curve, eta, whole_bytes_);
      try_theta(with);
      if (!best || with.period_s < best->period_s) best = std::move(with);
    }
    way = *std::move(best);
  }

  void try_theta(Way& way) const {
    if (fixed_theta_) {
      way.best = outcome(way, *fixed_theta_);
    } else {
      way.best = outcome(way, 0);
      for (double theta = least_theta; theta <= most_theta; theta *= 2) {
        ThetaOutcome other = outcome(way, elements_of(Bytes{theta}));
        if (other.done_s < way.best.done_s) way.best = std::move(other);
      }
    }
    way.timed_s = way.period_s = period_s(way.best.done_s);
  }

  void make_ways() {
    add(default_way(), true);
    if (strategy_.takes_group() && !asked_.group_size) {
      // Rings are laid through groups that share a switch or a node.
      const int most = strategy_.takes_rings() ? timers_.search.cost().ranks_per_node : job_.ranks;
      for (int k = 1; k <= job_.ranks / k; ++k) {
        if (job_.ranks % k != 0) continue;
        if (k <= most) add_group(k);
        if (k != job_.ranks / k && job_.ranks / k <= most) add_group(job_.ranks / k);
      }
    }
    if (strategy_.takes_segments() && !asked_.segments) look_for_segments();
  }

  [[nodiscard]] models::Thresholds default_way() const {
    models::Thresholds thresholds = chosen_;
    constexpr int some_segments = 16;
    if (strategy_.takes_segments()) thresholds.segments = asked_.segments.value_or(some_segments);
    return thresholds;
  }

  void add_group(int k) {
    if (k == chosen_.group_size) return;
    models::Thresholds thresholds = default_way();
    thresholds.group_size = k;
    try {
      add(thresholds, false);
    } catch (const InputError&) {
      // The algorithm has no schedule for this k.
    }
  }

  // Up and down from the first way, as long as it gets better.
  void look_for_segments() {
    for (const bool up : {true, false}) {
      double last_s = ways_.front().period_s;
      models::Thresholds thresholds = default_way();
      for (;;) {
        thresholds.segments = up ? 2 * thresholds.segments : thresholds.segments / 2;
        constexpr int most = 256;
        if (thresholds.segments < 1 || thresholds.segments > most || !add(thresholds, false)) break;
        if (ways_.back().period_s > last_s) break;
        last_s = ways_.back().period_s;
      }
    }
  }

  // The best theta of every way that can be the best.
  void look_for_theta() {
    const auto any = [](int end) { return std::pair(0, end); };
    std::sort(ways_.begin(), ways_.end(),
              [](const Way& a, const Way& b) { return a.period_s < b.period_s; });
    double best_s = ways_.front().period_s;
    // Often round theta are as good as anything that is contiguous.
    SizeCurve least = ways_.front().curve;
    for (std::size_t i = 1; i < ways_.size(); ++i)
      least = least_of(least, ways_[i].curve, least_bytes_, whole_bytes_);
    least_s_ = least_done_s(job_.clock, cost(least), any);
    // The timer of the plan may find a way faster than the timer of this search does.
    const auto worth = [&](std::size_t i) {
      const bool may_be_faster =
          ways_.size() > 1 && i < most_timed && !is_by_steps(ways_[i]) && !is_long(ways_[i]);
      return may_be_faster ? worth_timing : 1 - tolerance;
    };
    if (period_s(least_s_) >= worth(0) * best_s) return;
    const double of_all_s = std::exchange(least_s_, 1e300);
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      Way& way = ways_[i];
      const double bound =
          ways_.size() == 1 ? of_all_s : least_done_s(job_.clock, cost(way.curve), any);
      if (period_s(bound) >= worth(i) * best_s) {
        least_s_ = std::min(least_s_, bound);
        continue;
      }
      ThetaSearch search =
          best_theta(job_.clock, sums_, cost(way.curve), tolerance, {way.best}, most_tried, bound);
      least_s_ = std::min(least_s_, std::max(bound, search.least_done_s));
      way.best = std::move(search.best);
      way.timed_s = way.period_s = period_s(way.best.done_s);
      best_s = std::min(best_s, way.period_s);
    }
  }

  [[nodiscard]] const models::PlannedSchedule& schedule_for(const Way& way, double bytes) const {
    return way.large && bytes > way.thresholds.hybrid.value() ? *way.large : way.small;
  }

  // The period of buckets by the timer of the plan.
  [[nodiscard]] double timed_s(const Way& way, const std::vector<int>& ends) const {
    return period_s(done_s(job_.clock, ends, [&](int first, int end) -> BucketCost {
      const std::int64_t elements = sums_[to_size(end)] - sums_[to_size(first)];
      const double bytes = static_cast<double>(elements) * element_bytes_;
      const double time_s = timers_.timed->time(schedule_for(way, bytes), Bytes{bytes}).value();
      return {time_s + job_.aside.at(elements, end - first),
              job_.slows ? job_.clock.load.full_s(bytes, time_s) : 0};
    }));
  }

  // Whether the plan's timer would follow too many messages for these buckets.
  [[nodiscard]] bool is_long(const Way& way) const {
    if (!way.small.has_steps()) return true;  // both timers are one
    std::set<std::int64_t> small;
    std::set<std::int64_t> large;
    int first = 0;
    for (const int end : way.best.ends) {
      const std::int64_t elements = sums_[to_size(end)] - sums_[to_size(first)];
      const double bytes = static_cast<double>(elements) * element_bytes_;
      (&schedule_for(way, bytes) == &way.small ? small : large).insert(elements);
      first = end;
    }
    const CommunicationCost& cost = timers_.search.cost();
    double followed = 0;
    if (!small.empty())
      followed += static_cast<double>(small.size()) * followed_messages(way.small.schedule(), cost);
    if (!large.empty())
      followed +=
          static_cast<double>(large.size()) * followed_messages(way.large->schedule(), cost);
    return followed > job_.most_followed;
  }

  // Whether both timers are the step engine.
  [[nodiscard]] bool is_by_steps(const Way& way) const {
    return !timers_.timed || (timers_.timed->is_by_steps(way.small) &&
                              (!way.large || timers_.timed->is_by_steps(*way.large)));
  }

  // Where a way is too long to be timed, so may be the others, and the search's timer decides.
  void time_the_best() {
    std::sort(ways_.begin(), ways_.end(),
              [](const Way& a, const Way& b) { return a.period_s < b.period_s; });
    std::vector<Way*> close;
    for (Way& way : ways_) {
      if (way.period_s > worth_timing * ways_.front().period_s || close.size() >= most_timed) break;
      if (is_long(way)) return;
      close.push_back(&way);
    }
    if (std::all_of(close.begin(), close.end(), [&](const Way* way) { return is_by_steps(*way); }))
      return;
    for (Way* way : close) way->timed_s = timed_s(*way, way->best.ends);
    are_timed_ = true;
    // The others were further behind than the engines are apart.
    for (Way& way : ways_)
      if (std::find(close.begin(), close.end(), &way) == close.end())
        way.timed_s = std::max(way.timed_s, alike * as_good * ways_.front().timed_s);
  }

  [[nodiscard]] double least_timed_s() const {
    return std::min_element(ways_.begin(), ways_.end(),
                            [](const Way& a, const Way& b) { return a.timed_s < b.timed_s; })
        ->timed_s;
  }

  // The largest round theta that keeps the limit, or the best.
  [[nodiscard]] Bytes theta_of(const Way& way, double limit_s) const {
    if (asked_.fusion) return *asked_.fusion;
    if (fixed_theta_) return Bytes{0};
    const auto keeps_limit = [&](double theta) {
      const ThetaOutcome other = outcome(way, elements_of(Bytes{theta}));
      if (!are_timed_) return period_s(other.done_s) <= limit_s;
      return period_s(other.done_s) <= worth_timing * limit_s &&
             timed_s(way, other.ends) <= limit_s;
    };
    for (double theta = most_theta; theta >= least_theta; theta /= 2)
      if (keeps_limit(theta)) return Bytes{theta};
    if (keeps_limit(0)) return Bytes{0};
    return Bytes{round_theta_bytes(way.best.elements, way.best.up_to, element_bytes_)};
  }

  static constexpr double least_theta = 64.0 * 1024;
  static constexpr double most_theta = 256.0 * 1024 * 1024;
  static constexpr int most_tried = 2000;

  const models::Strategy& strategy_;
  const ThresholdRequest& asked_;
  const PlanningJob& job_;
  const PlanningTimers& timers_;
  const models::Thresholds chosen_;
  std::vector<std::int64_t> sums_;
  double element_bytes_;
  double least_bytes_ = 0;  // of a bucket
  double whole_bytes_ = 0;
  std::optional<std::int64_t> fixed_theta_;  // in elements
  std::vector<Way> ways_;
  double least_s_ = 0;
  bool are_timed_ = false;
};

}  // namespace

void choose_way(const models::Strategy& strategy, const ThresholdRequest& asked,
                const PlanningJob& job, const PlanningTimers& timers, ChosenThresholds& chosen) {
  if (job.network.gradients.empty()) return;
  Ways(strategy, asked, job, timers, chosen.thresholds).choose(chosen);
}

}  // namespace paceline::simulator
