// Tests: tests/simulator/alternatives_test.cc.
#include "simulator/iteration/alternatives.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/plan/strategy.h"
#include "models/plan/tuned.h"
#include "simulator/planner/interval_cost.h"
#include "simulator/planner/nearest_all_reduces.h"

namespace paceline::simulator {
namespace {

class Changes {
 public:
  Changes(const TuningJob& job, const Candidates& candidates, const models::Plan& plan,
          std::span<const std::string> only)
      : job_(job),
        candidates_(candidates),
        plan_(plan),
        sums_(element_sums(job.planning.network.gradients)),
        curve_cost_(sums_, models::element_size(job.planning.wire).value(), candidates.least,
                    job.planning.aside, job.planning.slows, job.planning.clock.load),
        nearest_(job.planning, job.timers, only),
        is_by_clock_(job.clock_differs.empty() && plan.streams == 1 &&
                     plan.overlap == job.overlap) {
    const StreamClock& clock = job.planning.clock;
    const std::size_t count = plan.buckets.size();
    before_.resize(count + 1);
    rest_.resize(count + 1);
    rest_[count] = {0, clock.computed_s};
    std::vector<BucketCost> costs;
    for (std::size_t i = 0; i < count; ++i) {
      costs.push_back(cost(schedule_of(i), first_of(i), end_of(i)));
      before_[i + 1] = before_[i].after(costs[i], ready_s(end_of(i)), clock.slowing);
    }
    for (std::size_t i = count; i-- > 0;) {
      const double stream_s = costs[i].stream_s + rest_[i + 1].stream_s;
      rest_[i] = {stream_s, std::max(ready_s(end_of(i)) + stream_s,
                                     rest_[i + 1].least_s + clock.slowing * costs[i].traffic_s)};
    }
  }

  [[nodiscard]] std::vector<Alternative> of_bucket(std::size_t i) {
    found_.clear();
    add_all_reduce(i);
    const int first = first_of(i);
    const int end = end_of(i);
    if (i + 1 < plan_.buckets.size()) {
      const int last = end_of(i + 1);
      add(changed_at(ChangeKind::merged, i, 2, {first, last}));
      if (end - first > 1) add(changed_at(ChangeKind::ends_earlier, i, 2, {first, end - 1, last}));
      if (last - end > 1) add(changed_at(ChangeKind::ends_later, i, 2, {first, end + 1, last}));
    }
    if (end - first > 1) add(changed_at(ChangeKind::cut, i, 1, {first, best_cut(i), end}));
    std::stable_sort(found_.begin(), found_.end(), [](const Alternative& a, const Alternative& b) {
      return a.period < b.period;
    });
    return std::move(found_);
  }

 private:
  // The rest of an iteration after some buckets, in the letters of the top of the header.
  struct Rest {
    double stream_s = 0;  // S
    double least_s = 0;   // R
  };

  [[nodiscard]] int first_of(std::size_t i) const { return plan_.buckets[i].first_gradient; }
  [[nodiscard]] int end_of(std::size_t i) const {
    return plan_.buckets[i].first_gradient + plan_.buckets[i].gradient_count;
  }
  [[nodiscard]] const models::PlannedSchedule& schedule_of(std::size_t i) const {
    return plan_.schedules[to_size(plan_.buckets[i].schedule)];
  }
  [[nodiscard]] double ready_s(int end) const {
    return job_.planning.clock.ready_s[to_size(end - 1)];
  }

  // The cost of a bucket of gradients [first, end), by the engine that times the plan; where the DAG
  // judges, by the curve.
  [[nodiscard]] BucketCost cost(const models::PlannedSchedule& schedule, int first, int end) const {
    if (!is_by_clock_) return curve_cost_(first, end);
    const std::int64_t elements = sums_[to_size(end)] - sums_[to_size(first)];
    const BucketTimer timer = job_.timers.timed.value_or(job_.timers.search);
    const double bytes = static_cast<double>(elements) * models::element_size(plan_.wire).value();
    const double time_s = timer.time(schedule, Bytes{bytes}).value();
    return {time_s + job_.planning.aside.at(elements, end - first),
            job_.planning.slows ? job_.planning.clock.load.full_s(bytes, time_s) : 0};
  }

  // When the update starts, if the rest of the plan follows on this state.
  [[nodiscard]] double done_s(const StreamState& state, const Rest& rest) const {
    return std::max(state.finish_s + rest.stream_s,
                    job_.planning.clock.slowing * state.traffic_s + rest.least_s);
  }

  // The change has buckets that end at all of `ends` but the first, which is where it begins.
  [[nodiscard]] PlanChange changed_at(ChangeKind kind, std::size_t i, int replaced,
                                      const std::vector<int>& ends) const {
    PlanChange change{kind, static_cast<int>(i), replaced, {}};
    for (std::size_t part = 0; part + 1 < ends.size(); ++part)
      change.parts.push_back(
          {ends[part + 1] - ends[part],
           candidates_.schedules[to_size(curve_cost_.which(ends[part], ends[part + 1]))]});
    return change;
  }

  // Where two buckets in the place of one are done soonest, by the planner's clock and curve.
  [[nodiscard]] int best_cut(std::size_t i) const {
    const double slowing = job_.planning.clock.slowing;
    int best = end_of(i) - 1;
    double least_s = 1e300;
    for (int cut = end_of(i) - 1; cut > first_of(i); --cut) {
      const double done =
          done_s(before_[i]
                     .after(curve_cost_(first_of(i), cut), ready_s(cut), slowing)
                     .after(curve_cost_(cut, end_of(i)), ready_s(end_of(i)), slowing),
                 rest_[i + 1]);
      if (done >= least_s) continue;
      least_s = done;
      best = cut;
    }
    return best;
  }

  void add_all_reduce(std::size_t i) {
    const bool is_by_steps = !job_.timers.timed || job_.timers.timed->is_by_steps(schedule_of(i));
    constexpr std::size_t tried_by_another_engine = 3;
    const Bytes bytes = plan_.bytes(plan_.buckets[i]);
    NearestAllReduces::Others others = nearest_.beside(
        schedule_of(i), bytes, is_by_steps && is_by_clock_ ? 1 : tried_by_another_engine);
    std::optional<Alternative> best;
    for (const models::PlannedSchedule* other : others.nearest) {
      PlanChange change{ChangeKind::all_reduce, static_cast<int>(i), 1, {}};
      change.parts.push_back({end_of(i) - first_of(i), *other});
      const Seconds period = period_of(change);
      if (!best || period < best->period) best = {std::move(change), period, {}};
    }
    if (!best) return;
    best->alike = std::move(others.alike);
    found_.push_back(std::move(*best));
  }

  void add(PlanChange change) {
    const Seconds period = period_of(change);
    found_.push_back({std::move(change), period, {}});
  }

  [[nodiscard]] Seconds period_of(const PlanChange& change) const {
    if (!is_by_clock_) return job_.period(changed(plan_, change, job_.planning.network.gradients));
    const StreamClock& clock = job_.planning.clock;
    StreamState state = before_[to_size(change.bucket)];
    int first = first_of(to_size(change.bucket));
    for (const PlanChange::Part& part : change.parts) {
      const int end = first + part.gradients;
      state = state.after(cost(part.all_reduce, first, end), ready_s(end), clock.slowing);
      first = end;
    }
    const double done = done_s(state, rest_[to_size(change.bucket + change.replaced)]);
    return std::max(Seconds{done + clock.update_s}, job_.least_other);
  }

  const TuningJob& job_;
  const Candidates& candidates_;
  const models::Plan& plan_;
  std::vector<std::int64_t> sums_;
  IntervalCost curve_cost_;
  NearestAllReduces nearest_;
  bool is_by_clock_;
  std::vector<StreamState> before_;  // each bucket
  std::vector<Rest> rest_;           // from each bucket on
  std::vector<Alternative> found_;
};

}  // namespace

std::string_view name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::all_reduce:
      return "all-reduce";
    case ChangeKind::merged:
      return "merged";
    case ChangeKind::cut:
      return "cut";
    case ChangeKind::ends_earlier:
      return "ends-earlier";
    case ChangeKind::ends_later:
      break;
  }
  return "ends-later";
}

models::Plan changed(const models::Plan& plan, const PlanChange& change,
                     const std::vector<models::Gradient>& gradients) {
  models::Plan other = plan;
  other.schedules.clear();
  other.buckets.clear();
  const auto add = [&](int first, int count, const models::PlannedSchedule& schedule) {
    const auto found = std::find(other.schedules.begin(), other.schedules.end(), schedule);
    models::Bucket bucket{.first_gradient = first,
                          .gradient_count = count,
                          .elements = 0,
                          .schedule = static_cast<int>(found - other.schedules.begin())};
    for (int i = first; i < first + count; ++i) bucket.elements += gradients[to_size(i)].elements;
    if (found == other.schedules.end()) other.schedules.push_back(schedule);
    other.buckets.push_back(bucket);
  };
  for (int i = 0; i < std::ssize(plan.buckets); ++i) {
    const models::Bucket& bucket = plan.buckets[to_size(i)];
    if (i == change.bucket) {
      int first = bucket.first_gradient;
      for (const PlanChange::Part& part : change.parts) {
        add(first, part.gradients, part.all_reduce);
        first += part.gradients;
      }
    }
    if (i < change.bucket || i >= change.bucket + change.replaced)
      add(bucket.first_gradient, bucket.gradient_count, plan.schedules[to_size(bucket.schedule)]);
  }
  other.strategy = models::strategy_of(other.schedules);
  return other;
}

std::vector<std::vector<Alternative>> alternatives(const TuningJob& job,
                                                   const Candidates& candidates,
                                                   const models::Plan& plan,
                                                   std::span<const std::string> only,
                                                   const std::function<bool()>& stop) {
  const auto is_candidate = [&](const models::PlannedSchedule& schedule) {
    return candidates.library ? schedule.library() == candidates.library : schedule.has_steps();
  };
  const bool can_change = plan.ranks > 1 && !plan.is_of_other_system() &&
                          std::all_of(plan.schedules.begin(), plan.schedules.end(), is_candidate);
  if (!can_change) return {};
  Changes changes(job, candidates, plan, only);
  std::vector<std::vector<Alternative>> of_buckets(plan.buckets.size());
  for (std::size_t i = 0; i < of_buckets.size(); ++i) {
    if (stop && stop()) break;
    of_buckets[i] = changes.of_bucket(i);
  }
  return of_buckets;
}

}  // namespace paceline::simulator
