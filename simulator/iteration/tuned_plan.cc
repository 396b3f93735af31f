// Tests: tests/simulator/tuning_test.cc.
#include "simulator/iteration/tuned_plan.h"

#include <algorithm>
#include <utility>

#include "models/base/error.h"
#include "models/plan/strategy.h"
#include "models/plan/tuned.h"
#include "simulator/iteration/plan_search.h"
#include "simulator/planner/optimal_fusion.h"
#include "simulator/planner/traffic_bound.h"

namespace paceline::simulator {
namespace {

constexpr const char* together = "its buckets travel together, which no recurrence times";

class Tuner {
 public:
  Tuner(const TuningJob& job, const TuningRequest& request)
      : job_(job),
        request_(request),
        sums_(element_sums(job.planning.network.gradients)),
        element_bytes_(models::element_size(job.planning.wire).value()),
        candidates_(make_candidates(job.planning, job.timers, request.all_reduces)),
        cost_(sums_, element_bytes_, candidates_.least, job.planning.aside, job.planning.slows,
              job.planning.clock.load) {}

  TunedPlan tune() {
    const FusionOptimum optimum = optimal_fusion(job_.planning.clock, cost_);
    found_.candidates = candidates_.tried;
    found_.left_out = candidates_.left_out;
    found_.why_not = candidates_.library           ? "its times are lines between samples"
                     : job_.streams > 1            ? together
                     : !job_.clock_differs.empty() ? job_.clock_differs
                     : !candidates_.is_exact
                         ? "links are shared, and no curve of the flow engine is exact"
                     : !optimum.is_exact ? "there are too many gradients to keep all states"
                     : !candidates_.left_out.empty() ? "some all-reduces have too many messages"
                                                     : "";
    found_.is_optimal = found_.why_not.empty();
    least_ = least_of(job_.streams);
    PlanSearch search(job_, candidates_, request_.all_reduces, least_,
                      {[this](const models::Plan& plan) { return take(plan); },
                       [this] { return is_stopped() || is_at_the_bound(); }});
    take(search.plan_of_ends(optimum.ends));
    const models::Plan* best_seed = nullptr;
    Seconds least_of_seeds;
    for (const models::Plan& seed : request_.seeds) {
      if (is_stopped()) break;
      const Seconds period = take(seed);
      if (best_seed != nullptr && period >= least_of_seeds) continue;
      best_seed = &seed;
      least_of_seeds = period;
    }
    if (!found_.is_optimal) {
      search.descend_from(optimum.ends);
      const bool is_by_clock = job_.streams == 1 && job_.clock_differs.empty();
      if (!is_by_clock) {
        search.descend_from_even_cuts();
        if (best_seed != nullptr) search.descend_from(*best_seed);
        search.escape();
      }
    }
    if (request_.explain) explain();
    found_.least_period = std::min(found_.period, least_of(found_.plan.streams));
    if (found_.plan.streams > 1) {
      found_.is_optimal = false;
      found_.why_not = together;
    }
    if (found_.is_optimal) found_.least_period = found_.period;
    return std::move(found_);
  }

 private:
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

  // Nothing is left to gain.
  [[nodiscard]] bool is_at_the_bound() const {
    return !found_.plan.buckets.empty() && found_.period <= (1 + gain_of_a_step) * least_;
  }

  // Descends by the changes that are listed, too, because these try all-reduces that the search did not.
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

  [[nodiscard]] bool overlaps_iterations() const {
    return job_.overlap == models::Overlap::double_buffered ||
           job_.overlap == models::Overlap::priority;
  }

  // Without any communication. With priorities, streams of communication update parameters.
  [[nodiscard]] Seconds computed() const {
    const StreamClock& clock = job_.planning.earliest;
    const double update_s = job_.overlap == models::Overlap::priority ? 0 : clock.update_s;
    return std::max(Seconds{clock.computed_s + update_s}, job_.least_other);
  }

  // The recurrence holds for one stream; plans of several streams have the bound by bytes alone.
  [[nodiscard]] Seconds least_of(int streams) const {
    if (candidates_.library) return least_by(candidates_.least);
    return streams > 1 ? least_of_any_streams(streams)
                       : std::max(least_period(), least_of_any_streams(1));
  }

  // This bound counts the bytes that have to travel (traffic_bound.h), and holds for every plan of
  // schedules. Switches may sum for a library, so that fewer bytes leave a rank.
  [[nodiscard]] Seconds least_of_any_streams(int streams) const {
    const PlanningJob& job = job_.planning;
    const CommunicationCost& cost = job_.timers.search.cost();
    const LeastTraffic traffic{
        least_time_of_a_byte(cost, job.ranks).value(),
        job.ranks > 1 ? job.aside.fixed_s + least_latency(cost, job.ranks).value() : 0,
        cost.transport.has_value()};
    if (job_.overlap == models::Overlap::double_buffered)
      return std::max(computed(), Seconds{static_cast<double>(sums_.back()) * element_bytes_ *
                                          traffic.s_per_byte});
    if (job_.overlap == models::Overlap::priority)
      return std::max(computed(), Seconds{least_period_of_priorities_s(
                                      job.earliest, sums_, element_bytes_, traffic, streams)});
    return std::max(computed(),
                    Seconds{least_start_of_update_s(job.earliest, sums_, element_bytes_, traffic) +
                            job.clock.update_s});
  }

  // The bound is the recurrence, with the least time that any schedule takes for each bucket.
  [[nodiscard]] Seconds least_period() const {
    return least_by(SizeCurve({least_time_of_any(job_.timers.search.cost(), job_.planning.ranks)}));
  }

  [[nodiscard]] Seconds least_by(const SizeCurve& any) const {
    const PlanningJob& job = job_.planning;
    const Seconds at_least = computed();
    if (job.ranks == 1 || job_.overlap == models::Overlap::priority) return at_least;
    const BucketAside none{job.aside.fixed_s, 0, 0};
    const IntervalCost cost(sums_, element_bytes_, any, none, job.slows, job.clock.load);
    const int count = static_cast<int>(sums_.size()) - 1;
    if (overlaps_iterations())
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
  Seconds least_;  // no plan of the job's streams has a shorter period
  TunedPlan found_;
};

}  // namespace

TunedPlan tune(const TuningJob& job, const TuningRequest& request) {
  PACELINE_ASSERT(!job.planning.network.gradients.empty(), "there is something to plan");
  return Tuner(job, request).tune();
}

}  // namespace paceline::simulator
