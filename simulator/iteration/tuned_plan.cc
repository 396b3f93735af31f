// Tests: tests/simulator/tuning_test.cc.
#include "simulator/iteration/tuned_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "models/base/error.h"
#include "models/plan/strategy.h"
#include "models/plan/tuned.h"
#include "simulator/planner/optimal_fusion.h"
#include "simulator/planner/traffic_bound.h"

namespace paceline::simulator {
namespace {

// A plan as the search moves it: ends of buckets, and the candidate of each.
struct Cut {
  std::vector<int> ends;
  std::vector<int> which;
};

constexpr const char* together = "its buckets travel together, which no recurrence times";

class Tuner {
 public:
  Tuner(const TuningJob& job, const TuningRequest& request)
      : job_(job),
        request_(request),
        sums_(element_sums(job.planning.network.gradients)),
        element_bytes_(models::element_size(job.planning.wire).value()),
        candidates_(make_candidates(job.planning, job.timers, request.all_reduces)),
        cost_(sums_, element_bytes_, candidates_.least, job.planning.aside, job.planning.slows) {}

  TunedPlan tune() {
    const FusionOptimum optimum = optimal_fusion(job_.planning.clock, cost_);
    Cut cut = with_candidates(optimum.ends);
    found_.candidates = candidates_.tried;
    found_.left_out = candidates_.left_out;
    found_.why_not = job_.streams > 1              ? together
                     : !job_.clock_differs.empty() ? job_.clock_differs
                     : !candidates_.is_exact
                         ? "links are shared, and no curve of the flow engine is exact"
                     : !optimum.is_exact ? "there are too many gradients to keep all states"
                     : !candidates_.left_out.empty() ? "some all-reduces have too many messages"
                                                     : "";
    found_.is_optimal = found_.why_not.empty();
    take(plan_of(cut));
    for (const models::Plan& seed : request_.seeds) {
      if (is_stopped()) break;
      take(seed);
    }
    if (!found_.is_optimal) search(std::move(cut));
    if (job_.streams > 1) search(best_even_cut());
    if (request_.explain) explain();
    found_.least_period = std::max(least_period(), least_of_any_streams());
    if (found_.plan.streams > 1) {
      // The recurrence is of one stream, and says nothing of such a plan.
      found_.least_period = least_of_any_streams();
      found_.is_optimal = false;
      found_.why_not = together;
    }
    if (found_.is_optimal) found_.least_period = found_.period;
    return std::move(found_);
  }

 private:
  [[nodiscard]] Cut with_candidates(const std::vector<int>& ends) const {
    Cut cut{ends, {}};
    int first = 0;
    for (const int end : ends) {
      cut.which.push_back(cost_.which(first, end));
      first = end;
    }
    return cut;
  }

  [[nodiscard]] models::Plan plan_of(const Cut& cut) const {
    models::Plan plan{.strategy = std::string(models::tuned_strategy().name),
                      .ranks = job_.planning.ranks,
                      .wire = job_.planning.wire,
                      .overlap = job_.overlap,
                      .streams = job_.streams,
                      .schedules = {},
                      .buckets = {},
                      .dispatch = {}};
    std::map<int, int> index;  // of candidates in the plan's schedules
    int first = 0;
    for (std::size_t i = 0; i < cut.ends.size(); ++i) {
      const auto [at, is_new] =
          index.try_emplace(cut.which[i], static_cast<int>(plan.schedules.size()));
      if (is_new)
        plan.schedules.push_back(candidates_.schedules[static_cast<std::size_t>(cut.which[i])]);
      const int end = cut.ends[i];
      plan.buckets.push_back({.first_gradient = first,
                              .gradient_count = end - first,
                              .elements = sums_[static_cast<std::size_t>(end)] -
                                          sums_[static_cast<std::size_t>(first)],
                              .schedule = at->second});
      first = end;
    }
    return plan;
  }

  // Evaluates the plan and keeps it if it is the best. Returns its period.
  Seconds take(const models::Plan& plan) {
    const Seconds period = job_.period(plan);
    ++found_.evaluated;
    if (found_.plan.buckets.empty() || period < found_.period) {
      found_.plan = plan;
      found_.period = period;
    }
    if (request_.progress) request_.progress({found_.period, found_.evaluated});
    return period;
  }

  bool is_stopped() {
    if (found_.is_complete && request_.stop && request_.stop()) found_.is_complete = false;
    return !found_.is_complete;
  }

  // The best cut into 1 to 16 buckets of about equal sizes. Buckets that travel together hide each
  // other's latency, so that more of them may be better than one stream's optimum has.
  Cut best_even_cut() {
    Cut best;
    Seconds least;
    constexpr int most = 16;
    for (int buckets = 1; buckets <= most; ++buckets) {
      if (buckets > 1 && is_stopped()) break;
      Cut even = with_candidates(even_ends(buckets));
      const Seconds period = take(plan_of(even));
      if (buckets > 1 && period >= least) continue;
      least = period;
      best = std::move(even);
    }
    return best;
  }

  [[nodiscard]] std::vector<int> even_ends(int buckets) const {
    const auto all = static_cast<double>(sums_.back());
    std::vector<int> ends;
    for (std::size_t end = 1; end < sums_.size(); ++end) {
      const double share = static_cast<double>(sums_[end]) / all;
      if (share * buckets >= static_cast<double>(ends.size() + 1) || end + 1 == sums_.size())
        ends.push_back(static_cast<int>(end));
    }
    return ends;
  }

  // Descends from the cut: the first neighbour that is better by more than rounding is the next cut.
  void search(Cut cut) {
    Seconds best = job_.period(plan_of(cut));
    for (bool is_better = true; is_better && !is_stopped();) {
      is_better = false;
      for (const std::vector<int>& ends : neighbours(cut.ends)) {
        if (is_stopped()) return;
        Cut other = with_candidates(ends);
        const Seconds period = take(plan_of(other));
        if (period >= (1 - gain_of_a_step) * best) continue;
        best = period;
        cut = std::move(other);
        is_better = true;
        break;
      }
    }
  }

  // Descends by the changes that are listed, too, for these try all-reduces that the search did not.
  void explain() {
    for (bool is_better = true; is_better;) {
      is_better = false;
      found_.alternatives = alternatives(job_, candidates_, found_.plan, request_.all_reduces,
                                         request_.stop_explaining);
      const Alternative* best = nullptr;
      for (const std::vector<Alternative>& of_bucket : found_.alternatives)
        if (!of_bucket.empty() && (best == nullptr || of_bucket.front().period < best->period))
          best = &of_bucket.front();
      if (best == nullptr || best->period >= (1 - gain_of_a_step) * found_.period) return;
      if (request_.stop_explaining && request_.stop_explaining()) return;
      const Seconds before = found_.period;
      is_better =
          take(changed(found_.plan, best->change, job_.planning.network.gradients)) < before;
    }
  }

  // One end moves by one to eight gradients, goes away, or is new halfway in a bucket. The last first:
  // what travels last is what is exposed.
  [[nodiscard]] static std::vector<std::vector<int>> neighbours(const std::vector<int>& ends) {
    std::vector<std::vector<int>> all;
    for (std::size_t i = ends.size(); i-- > 0;) {
      const int low = i == 0 ? 0 : ends[i - 1];
      if (i + 1 < ends.size()) {
        for (const int by : {-1, 1, -2, 2, -4, 4, -8, 8}) {
          std::vector<int> other = ends;
          other[i] += by;
          if (other[i] > low && other[i] < ends[i + 1]) all.push_back(std::move(other));
        }
        std::vector<int> merged = ends;
        merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(i));
        all.push_back(std::move(merged));
      }
      if (ends[i] - low > 1) {
        std::vector<int> cut = ends;
        cut.insert(cut.begin() + static_cast<std::ptrdiff_t>(i), (low + ends[i]) / 2);
        all.push_back(std::move(cut));
      }
    }
    return all;
  }

  // Without any communication.
  [[nodiscard]] Seconds computed() const {
    const StreamClock& clock = job_.planning.earliest;
    return std::max(Seconds{clock.computed_s + clock.update_s}, job_.least_other);
  }

  // This bound counts the bytes that have to travel (traffic_bound.h), and holds for every plan.
  [[nodiscard]] Seconds least_of_any_streams() const {
    const PlanningJob& job = job_.planning;
    const CommunicationCost& cost = job_.timers.search.cost();
    const LeastTraffic traffic{
        least_time_of_a_byte(cost, job.ranks).value(),
        job.ranks > 1 ? job.aside.fixed_s + least_latency(cost, job.ranks).value() : 0,
        cost.transport.has_value()};
    const bool overlaps_iterations = job_.overlap == models::Overlap::double_buffered ||
                                     job_.overlap == models::Overlap::priority;
    if (overlaps_iterations)
      return std::max(computed(), Seconds{static_cast<double>(sums_.back()) * element_bytes_ *
                                          traffic.s_per_byte});
    return std::max(computed(),
                    Seconds{least_start_of_update_s(job.earliest, sums_, element_bytes_, traffic) +
                            job.clock.update_s});
  }

  // The bound is the recurrence, with the least time that any schedule takes for each bucket.
  [[nodiscard]] Seconds least_period() const {
    const PlanningJob& job = job_.planning;
    const Seconds at_least = computed();
    if (job.ranks == 1) return at_least;
    const SizeCurve any({least_time_of_any(job_.timers.search.cost(), job.ranks)});
    const BucketAside none{job.aside.fixed_s, 0, 0};
    const IntervalCost cost(sums_, element_bytes_, any, none, job.slows);
    const int count = static_cast<int>(sums_.size()) - 1;
    const bool overlaps_iterations = job_.overlap == models::Overlap::double_buffered ||
                                     job_.overlap == models::Overlap::priority;
    if (overlaps_iterations)
      return std::max(at_least,
                      Seconds{any.at(static_cast<double>(sums_.back()) * element_bytes_)});
    if (!job.clock.is_even) {
      // Layers may lose less than the clock says, and may be faster beside traffic than alone.
      return std::max(at_least,
                      Seconds{optimal_fusion(job.earliest, cost).done_s + job.clock.update_s});
    }
    PACELINE_ASSERT(count > 0, "there is a bucket");
    return std::max(at_least, Seconds{optimal_fusion(job.clock, cost).done_s + job.clock.update_s});
  }

  static constexpr double gain_of_a_step = 1e-6;

  const TuningJob& job_;
  const TuningRequest& request_;
  std::vector<std::int64_t> sums_;
  double element_bytes_;
  Candidates candidates_;
  IntervalCost cost_;
  TunedPlan found_;
};

}  // namespace

TunedPlan tune(const TuningJob& job, const TuningRequest& request) {
  PACELINE_ASSERT(!job.planning.network.gradients.empty(), "there is something to plan");
  return Tuner(job, request).tune();
}

}  // namespace paceline::simulator
