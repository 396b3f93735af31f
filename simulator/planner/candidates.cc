// Tests: tests/simulator/tuning_test.cc.
#include "simulator/planner/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "models/base/error.h"
#include "models/collective/catalogue.h"
#include "models/plan/tuned.h"
#include "simulator/engine/effort.h"
#include "simulator/engine/prepare.h"
#include "simulator/engine/routes.h"
#include "simulator/engine/step_engine.h"
#include "simulator/engine/step_program.h"
#include "simulator/planner/fastest_all_reduce.h"
#include "simulator/planner/traffic_bound.h"

namespace paceline::simulator {
namespace {

bool is_by_steps(const models::PlannedSchedule& schedule, const PlanningTimers& timers) {
  return !timers.timed || timers.timed->is_by_steps(schedule);
}

bool prepares_too_many(const models::PlannedSchedule& schedule, const PlanningJob& job,
                       const PlanningTimers& timers) {
  return job.ranks > 1 && !schedule.options.segments &&
         followed_messages(schedule.schedule(), timers.search.cost()) > job.most_prepared;
}

bool follows_too_many(const models::PlannedSchedule& schedule, const PlanningJob& job,
                      const PlanningTimers& timers) {
  return !is_by_steps(schedule, timers) &&
         followed_messages(schedule.schedule(), timers.search.cost()) > job.most_followed;
}

class Maker {
 public:
  Maker(const PlanningJob& job, const PlanningTimers& timers) : job_(job), timers_(timers) {
    std::int64_t least = job.network.parameters();
    for (const models::Gradient& gradient : job.network.gradients)
      least = std::min(least, gradient.elements);
    const double element = models::element_size(job.wire).value();
    least_bytes_ = element * static_cast<double>(std::max<std::int64_t>(1, least));
    whole_bytes_ = std::max(least_bytes_, element * static_cast<double>(job.network.parameters()));
  }

  // A library's time has steps where it chooses another of its algorithms, so that samples are close.
  Candidates make(models::Library library) {
    constexpr int samples = 400;
    const models::PlannedSchedule own = models::called(library, job_.ranks);
    found_.least = job_.ranks == 1 ? SizeCurve({{least_bytes_, 0, 0, 0}})
                                   : sampled_pieces(time_of(timers_.search, own), least_bytes_,
                                                    whole_bytes_, samples);
    found_.schedules = {own};
    found_.library = library;
    found_.tried = 1;
    found_.is_exact = false;
    return std::move(found_);
  }

  Candidates make(std::span<const std::string> only) {
    for (const auto& [algorithm, options] :
         catalogue_options(job_.ranks, timers_.search.cost().ranks_per_node, only)) {
      try {
        add(models::scheduled(algorithm->name, options));
      } catch (const TooManyMessages&) {
        left_out(algorithm->name, options);
      } catch (const InputError&) {
        // The algorithm has no schedule for these options.
      }
    }
    if (found_.least.empty() && !only.empty())
      throw InputError(
          fmt::format("{} cannot be timed on {} ranks", fmt::join(only, ", "), job_.ranks),
          "allow a ring, which can");
    PACELINE_ASSERT(!found_.least.empty(), "a ring is timed on any cluster");
    return std::move(found_);
  }

 private:
  void left_out(std::string_view algorithm, const models::ScheduleOptions& options) {
    found_.left_out.push_back(models::described(algorithm, options));
  }

  void add(models::PlannedSchedule schedule) {
    const bool has_no_cost = job_.ranks == 1;
    if (is_ruled_out_in_form(schedule)) {
      ++found_.tried;
      return;
    }
    if (prepares_too_many(schedule, job_, timers_))
      return left_out(schedule.algorithm, schedule.options);
    if (is_ruled_out_in_part(schedule)) {
      ++found_.tried;
      return;
    }
    if (follows_too_many(schedule, job_, timers_))
      return left_out(schedule.algorithm, schedule.options);
    const bool by_steps = is_by_steps(schedule, timers_);
    ++found_.tried;
    if (is_ruled_out(time_of(timers_.search, schedule), least_bytes_, whole_bytes_) &&
        is_ruled_out_by_its_engine(schedule))
      return;
    SizeCurve curve = has_no_cost ? SizeCurve({{least_bytes_, 0, 0, 0}})
                      : by_steps  ? convex_pieces(time_of(timers_.search, schedule), least_bytes_,
                                                  whole_bytes_, accuracy)
                                  : sampled(schedule);
    if (!by_steps) found_.is_exact = false;
    std::vector<SizeCurve::Piece> pieces = curve.pieces();
    for (SizeCurve::Piece& piece : pieces) piece.which = static_cast<int>(found_.schedules.size());
    found_.schedules.push_back(std::move(schedule));
    curve = SizeCurve(std::move(pieces));
    found_.least = found_.least.empty() ? std::move(curve)
                                        : least_of(found_.least, curve, least_bytes_, whole_bytes_);
  }

  static TimeOfSize time_of(BucketTimer timer, const models::PlannedSchedule& schedule) {
    return [timer, &schedule](double bytes) { return timer.time(schedule, Bytes{bytes}).value(); };
  }

  // The other engine's times, where they are seldom those of the step engine to the last digit.
  [[nodiscard]] SizeCurve sampled(const models::PlannedSchedule& schedule) const {
    constexpr int samples = 33;
    return sampled_pieces(time_of(*timers_.timed, schedule), least_bytes_, whole_bytes_, samples);
  }

  // The same by its closed form, before anything is prepared.
  [[nodiscard]] bool is_ruled_out_in_form(const models::PlannedSchedule& schedule) const {
    if (found_.least.empty()) return false;
    const auto least = least_in_form(schedule.algorithm, schedule.options, timers_.search.cost());
    if (!least) return false;
    const auto is_above = [&](double bytes) { return least->at(bytes) >= found_.least.at(bytes); };
    return is_above(least_bytes_) && is_above(whole_bytes_) &&
           std::all_of(found_.least.pieces().begin(), found_.least.pieces().end(),
                       [&](const SizeCurve::Piece& piece) {
                         return is_above(std::max(least_bytes_, piece.from_bytes));
                       });
  }

  // The same by what few of its ranks send and receive, where it has many messages: those of the first
  // node, and one at every distance, through which the longest ways of a tree go.
  [[nodiscard]] bool is_ruled_out_in_part(const models::PlannedSchedule& schedule) const {
    constexpr double many = 1000;
    const CommunicationCost& cost = timers_.search.cost();
    if (found_.least.empty() || message_count(schedule.schedule()).distinct < many ||
        followed_messages(schedule.schedule(), cost) < many)
      return false;
    std::set<int> some;
    for (int rank = 0; rank < std::min(job_.ranks, cost.ranks_per_node); ++rank) some.insert(rank);
    for (int ranks = job_.ranks; ranks > 0; ranks /= 2) some.insert(ranks - 1);
    const std::vector<int> few(some.begin(), some.end());
    const Routes routes(cost, job_.ranks);
    const Load load = is_by_steps(schedule, timers_) ? Load::sum : Load::alike;
    const StepEngine part(std::make_shared<StepProgram>(make_step_program_of(
                              few, schedule.schedule(), routes, most_prepared_messages, load)),
                          routes, cost.gamma.value());
    const double least = least_of_steps(schedule);
    const TimeOfSize time = [&](double bytes) { return least * part.time(Bytes{bytes}).value(); };
    const double middle = std::sqrt(least_bytes_ * whole_bytes_);
    return is_ruled_out(time, middle, whole_bytes_) && is_ruled_out(time, least_bytes_, middle);
  }

  // The least share of a lower bound in steps that an engine takes. The flow engine takes all of it.
  // There is no bound for the executor engine and for SimGrid. Half of the step engine's time is less
  // than they were seen to take.
  [[nodiscard]] double least_of_steps(const models::PlannedSchedule& schedule) const {
    if (is_by_steps(schedule, timers_)) return 1;
    return timers_.timed->engine(schedule) == EngineKind::flow ? 1 : 0.5;
  }

  // Whether a candidate that the step engine rules out is so by the engine that times it.
  [[nodiscard]] bool is_ruled_out_by_its_engine(const models::PlannedSchedule& schedule) const {
    if (is_by_steps(schedule, timers_)) return true;
    const CommunicationCost& cost = timers_.search.cost();
    const Routes routes(cost, job_.ranks);
    const StepEngine bound(std::make_shared<StepProgram>(make_step_program(
                               schedule.schedule(), routes, Collapse::equal_positions,
                               most_prepared_messages, Load::alike)),
                           routes, cost.gamma.value());
    const double least = least_of_steps(schedule);
    return is_ruled_out([&](double bytes) { return least * bound.time(Bytes{bytes}).value(); },
                        least_bytes_, whole_bytes_);
  }

  // Whether no bucket of these sizes would take it, by a lower bound of its time that is convex, as the
  // step engine's is: within the sizes it is at least its lines through two points beyond each end.
  [[nodiscard]] bool is_ruled_out(const TimeOfSize& time, double from, double to) const {
    if (found_.least.empty() || to < 2 * from || job_.ranks == 1) return false;
    constexpr double near = 0.01;
    const auto line = [&](double low, double high) {
      const double at_low = time(low);
      return SizeCurve::Piece{low, at_low, (time(high) - at_low) / (high - low), 0};
    };
    const SizeCurve::Piece small = line(from * (1 - near), from);
    const auto is_above = [&](const SizeCurve::Piece& a, const SizeCurve::Piece& b, double bytes) {
      constexpr double rounding = 1 + 1e-9;
      return std::max(a.at(bytes), b.at(bytes)) >= rounding * found_.least.at(bytes);
    };
    if (!is_above(small, small, from)) return false;
    const SizeCurve::Piece large = line(to, to * (1 + near));
    if (!is_above(small, large, to)) return false;
    // Both are straight between these sizes, except for where the lines cross.
    for (const SizeCurve::Piece& piece : found_.least.pieces())
      if (!is_above(small, large, std::clamp(piece.from_bytes, from, to))) return false;
    const double steeper = large.s_per_byte - small.s_per_byte;
    if (steeper <= 0) return true;
    const double crossing = (small.at(0) - large.at(0)) / steeper;
    return crossing <= from || crossing >= to || is_above(small, large, crossing);
  }

  static constexpr double accuracy = 1e-9;

  const PlanningJob& job_;
  const PlanningTimers& timers_;
  double least_bytes_ = 0;
  double whole_bytes_ = 0;
  Candidates found_;
};

}  // namespace

Candidates make_candidates(const PlanningJob& job, const PlanningTimers& timers,
                           std::span<const std::string> only) {
  const auto library = models::library_of(only);
  return library ? Maker(job, timers).make(*library) : Maker(job, timers).make(only);
}

std::vector<CandidateOptions> catalogue_options(int ranks, int ranks_per_node,
                                                std::span<const std::string> only) {
  std::vector<CandidateOptions> all;
  for (const models::CollectiveAlgorithm& algorithm : models::all_reduce_catalogue()) {
    if (!only.empty() && std::find(only.begin(), only.end(), algorithm.name) == only.end())
      continue;
    for (const models::ScheduleOptions& options :
         candidate_options(algorithm, {.ranks = ranks}, ranks_per_node))
      all.push_back({&algorithm, options});
  }
  return all;
}

bool has_too_many_messages(const models::PlannedSchedule& schedule, const PlanningJob& job,
                           const PlanningTimers& timers) {
  return prepares_too_many(schedule, job, timers) || follows_too_many(schedule, job, timers);
}

std::optional<SizeCurve::Piece> least_in_form(std::string_view algorithm,
                                              const models::ScheduleOptions& options,
                                              const CommunicationCost& cost) {
  if (cost.platform != nullptr || cost.transport || cost.intra_kind != models::IntraKind::switched)
    return std::nullopt;
  const auto form = models::all_reduce_algorithm(algorithm).closed_form(options);
  if (!form) return std::nullopt;
  const double alpha_s = std::min(cost.intra.alpha, cost.nic.alpha).value();
  const double beta_s = std::min(cost.intra.beta, cost.nic.beta / cost.nics_per_node).value();
  return SizeCurve::Piece{0, form->alpha * alpha_s,
                          form->beta * beta_s + form->gamma * cost.gamma.value(), 0};
}

SizeCurve::Piece least_time_of_any(const CommunicationCost& cost, int ranks) {
  if (ranks <= 1 || cost.platform != nullptr || cost.transport) return {};
  return {0, least_latency(cost, ranks).value(), least_time_of_a_byte(cost, ranks).value(), 0};
}

}  // namespace paceline::simulator
