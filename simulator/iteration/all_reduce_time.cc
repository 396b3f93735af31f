// Tests: tests/simulator/all_reduce_time_test.cc.
#include "simulator/iteration/all_reduce_time.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/base/error.h"
#include "models/base/interval.h"
#include "models/base/names.h"
#include "models/cluster/placement.h"
#include "models/collective/catalogue.h"
#include "simulator/cost/library_curve.h"
#include "simulator/engine/effort.h"
#include "simulator/engine/nccl_routes.h"
#include "simulator/planner/fastest_all_reduce.h"

namespace paceline::simulator {
namespace {

constexpr std::array bounds = {Bound::stated, Bound::fast, Bound::slow};

constexpr std::array<std::pair<std::string_view, std::optional<NcclAlgorithm>>, 3> nccl_names = {
    {{"nccl", std::nullopt},
     {"nccl-ring", NcclAlgorithm::ring},
     {"nccl-tree", NcclAlgorithm::tree}}};

// The middle 90 % where the figures' ends give `with_figures`, and where what they do not explain
// has the deviation `spread`: the reach from the stated time in either direction.
double reach(Seconds stated, Seconds with_figures, double spread) {
  const double known = std::abs(std::log(with_figures / stated));
  return std::exp(std::hypot(known, normal_reach * spread));
}

// The key of its timers.
std::string key_of(const NcclCollective& of) {
  return fmt::format("nccl {} {}", of.only ? name(*of.only) : "", name(of.collective));
}

AllReduceTime predicted(Seconds time, Seconds low, Seconds high, Seconds latency,
                        std::string timed_by) {
  AllReduceTime result{.time = {time, low, high, Provenance::predicted, timed_by},
                       .latency = latency,
                       .timed_by = {}};
  result.timed_by = std::move(timed_by);
  return result;
}

}  // namespace

std::optional<NcclCollective> nccl_collective(std::string_view name,
                                              models::Collective collective) {
  for (const auto& [known, only] : nccl_names) {
    if (known != name) continue;
    check_is_nccls(collective);
    const bool is_all_reduce = collective == models::Collective::all_reduce;
    if (only == NcclAlgorithm::tree && !is_all_reduce)
      throw InputError(fmt::format("NCCL has no {} by trees", models::name(collective)),
                       "time nccl, or an all-reduce");
    if (only && is_sends_and_receives(collective))
      throw InputError(fmt::format("NCCL chooses no algorithm for {}", models::name(collective)),
                       "time nccl");
    return NcclCollective{only, collective};
  }
  return std::nullopt;
}

std::vector<std::string> nccl_collective_names() {
  std::vector<std::string> names;
  for (const auto& [name, only] : nccl_names) names.emplace_back(name);
  return names;
}

AllReduceSpread all_reduce_spread(const Pace& pace) {
  constexpr AllReduceSpread unmeasured{.transfer = 0.358, .latency = 0.358};
  constexpr AllReduceSpread measured{.transfer = 0.114, .latency = 0.429};
  constexpr AllReduceSpread doubling{.transfer = 0.072, .latency = 0.715};
  if (!pace.is_measured) return unmeasured;
  const double root = std::sqrt(pace.doublings);
  return {.transfer = std::hypot(measured.transfer, root * doubling.transfer),
          .latency = std::hypot(measured.latency, root * doubling.latency)};
}

AllReduceTimer::AllReduceTimer(const AllReduceRequest& request) : request_(request) {
  models::check_ranks(request.cluster, request.ranks);
  for (const MeasuredAllReduce& measured : request.measured)
    models::check_ranks(request.cluster, measured.ranks);
  (void)unpaced();
}

AllReduceTime AllReduceTimer::with_interval(Timers& timers, const Parts& parts,
                                            std::string timed_by) const {
  const auto whole = [](const NcclTime& time) { return time.latency + time.transfer; };
  const NcclTime stated = parts(timers, Bound::stated);
  const Seconds time = whole(stated);
  if (time <= Seconds{0}) return predicted(time, time, time, time, std::move(timed_by));
  const AllReduceSpread spread = all_reduce_spread(timers.pace);
  const double unexplained = std::hypot(spread.latency * (stated.latency / time),
                                        spread.transfer * (stated.transfer / time));
  const Seconds fast = std::min(time, whole(parts(timers, Bound::fast)));
  const Seconds slow = std::max(time, whole(parts(timers, Bound::slow)));
  return predicted(time, time / reach(time, fast, unexplained),
                   time * reach(time, slow, unexplained), stated.latency, std::move(timed_by));
}

const models::PlannedSchedule& AllReduceTimer::chosen(std::string_view algorithm,
                                                      const models::ScheduleOptions& options,
                                                      Bytes bytes) {
  const bool in_time = request_.time_budget == TimeBudget::bounded;
  const int ranks = options.ranks;
  const auto new_engine = [&](EngineKind kind) {
    return CollectiveTimer(paced_cost(request_.cluster, request_.profile, Bound::stated, ranks, {}),
                           kind, in_time ? most_prepared_in_time : most_prepared_messages);
  };
  auto at = choices_.find(ranks);
  if (at == choices_.end())
    at = choices_
             .emplace(ranks, Choice{new_engine(EngineKind::step), new_engine(request_.engine), {}})
             .first;
  Choice& choice = at->second;
  constexpr double most_prepared = 1e5;
  std::vector<models::PlannedSchedule>& schedules =
      choice.schedules[models::described(algorithm, options)];
  if (schedules.empty())
    schedules = candidate_schedules(algorithm, options, choice.by_steps.cost(),
                                    in_time ? most_planned_in_time : most_prepared);
  constexpr double most_followed = 5e5;
  constexpr double most_followed_in_time_for_a_size = 5000;
  return schedules[fastest_of(schedules, bytes, {choice.by_steps, choice.timed},
                              in_time ? most_followed_in_time_for_a_size : most_followed)];
}

AllReduceTime AllReduceTimer::by_engine(std::string_view algorithm, models::ScheduleOptions options,
                                        Bytes bytes) {
  options.ranks = request_.ranks;
  const models::PlannedSchedule& schedule = chosen(algorithm, options, bytes);
  const auto paced = [&](const Pace& pace, const MeasuredAllReduce& of) {
    models::ScheduleOptions measured = options;
    measured.ranks = of.ranks;
    return engine_at(pace, of.ranks, Bound::stated)
        .time(chosen(algorithm, measured, of.bytes), of.bytes);
  };
  Timers& timers = timers_for(models::described(algorithm, options), paced);
  const auto parts = [&](Timers& at, Bound bound) {
    CollectiveTimer& engine = at.engines.at(bound);
    const Seconds latency = engine.time(schedule, Bytes{0});
    return NcclTime{latency, engine.time(schedule, bytes) - latency};
  };
  AllReduceTime time =
      with_interval(timers, parts, described(timers.engines.at(Bound::stated).engine(schedule)));
  time.all_reduce = models::described(schedule);
  return time;
}

AllReduceTime AllReduceTimer::by_nccl(NcclCollective of, Bytes bytes) {
  const auto paced = [&](const Pace& pace, const MeasuredAllReduce& measured) {
    return practice_at(pace, measured.ranks, Bound::stated, of.collective)
        .time(counted_of(of.collective, measured.ranks, measured.bytes), of.only);
  };
  Timers& timers = timers_for(key_of(of), paced);
  const auto parts = [&](Timers& at, Bound bound) {
    return practice(at, bound, of.collective)
        .parts(counted_of(of.collective, request_.ranks, bytes), of.only);
  };
  return with_interval(timers, parts, described(practice(timers, Bound::stated, of.collective)));
}

std::optional<AllReduceTime> AllReduceTimer::by_curve(models::Library library, Bytes bytes,
                                                      models::Collective collective) const {
  const LibraryJob job = library_job(request_.cluster, request_.ranks, request_.wire, collective);
  const auto at = [&](Bound bound) {
    return curve_on_routes(
        request_.profile, library, job, bound,
        paced_cost(request_.cluster, request_.profile, bound, request_.ranks, {}));
  };
  const auto stated = at(Bound::stated);
  if (!stated) return std::nullopt;
  bytes = counted_of(collective, request_.ranks, bytes);
  const auto time = [&](Bound bound) { return at(bound)->time(bytes); };
  const Seconds value = stated->time(bytes);
  const Seconds latency = std::min(value, stated->time(Bytes{0}));
  return predicted(value, std::min(time(Bound::fast), value), std::max(time(Bound::slow), value),
                   latency, stated->described(bytes, bytes));
}

AllReduceTime AllReduceTimer::by_name(std::string_view algorithm, models::ScheduleOptions options,
                                      Bytes bytes) {
  if (const auto of = nccl_collective(algorithm)) return by_nccl(*of, bytes);
  std::vector<std::string> known = nccl_collective_names();
  for (const models::CollectiveAlgorithm& entry : models::collective_catalogue())
    known.emplace_back(entry.name);
  if (std::find(known.begin(), known.end(), algorithm) == known.end())
    throw unknown_name("collective", algorithm, known);
  return by_engine(algorithm, options, bytes);
}

const NcclPractice& AllReduceTimer::nccl_practice() {
  const auto paced = [&](const Pace& pace, const MeasuredAllReduce& of) {
    return practice_at(pace, of.ranks, Bound::stated).time(of.bytes);
  };
  return practice(timers_for(key_of({}), paced), Bound::stated);
}

const NcclModel& AllReduceTimer::nccl_model() {
  return practice(unpaced(), Bound::stated).model();
}

double AllReduceTimer::followed(std::string_view algorithm, models::ScheduleOptions options,
                                Bytes bytes) {
  options.ranks = request_.ranks;
  const models::PlannedSchedule& schedule = chosen(algorithm, options, bytes);
  CollectiveTimer& engine = unpaced().engines.at(Bound::stated);
  if (engine.engine(schedule) != EngineKind::flow) return 0;
  return bounds.size() * followed_messages(schedule.schedule(), engine.cost());
}

AllReduceTimer::Timers& AllReduceTimer::unpaced() {
  const auto known = timers_.find("");
  if (known != timers_.end()) return known->second;
  return timers_.emplace("", timers_at({}, request_.ranks)).first->second;
}

AllReduceTimer::Timers& AllReduceTimer::timers_for(const std::string& algorithm,
                                                   const PacedTime& paced) {
  const std::vector<MeasuredAllReduce> told =
      telling(request_.measured, request_.cluster, request_.ranks);
  if (told.empty()) return unpaced();
  const auto known = timers_.find(algorithm);
  if (known != timers_.end()) return known->second;
  const bool between_nodes = models::used_nodes(request_.cluster, told.front().ranks) > 1;
  Pace pace = pace_of(told, between_nodes, paced);
  pace.doublings = std::abs(std::log2(static_cast<double>(told.front().ranks) / request_.ranks));
  return timers_.emplace(algorithm, timers_at(pace, request_.ranks)).first->second;
}

AllReduceTimer::Timers AllReduceTimer::timers_at(const Pace& pace, int ranks) const {
  Timers timers{.pace = pace, .engines = {}, .nccl = {}};
  for (const Bound bound : bounds) timers.engines.emplace(bound, engine_at(pace, ranks, bound));
  return timers;
}

CollectiveTimer AllReduceTimer::engine_at(const Pace& pace, int ranks, Bound bound) const {
  return CollectiveTimer(
      paced_cost(request_.cluster, request_.profile, bound, ranks, pace), request_.engine,
      request_.time_budget == TimeBudget::bounded ? most_prepared_in_time : most_prepared_messages);
}

NcclPractice AllReduceTimer::practice_at(const Pace& pace, int ranks, Bound bound,
                                         models::Collective collective) {
  if (!tables_)
    tables_ =
        nccl_tables(request_.nccl_version.empty() ? nccl_versions().back() : request_.nccl_version);
  return {*tables_,  request_.cluster,
          ranks,     paced_cost(request_.cluster, request_.profile, bound, ranks, pace),
          bound,     pace,
          collective};
}

const NcclPractice& AllReduceTimer::practice(Timers& timers, Bound bound,
                                             models::Collective collective) {
  const std::pair key(bound, collective);
  const auto known = timers.nccl.find(key);
  if (known != timers.nccl.end()) return known->second;
  return timers.nccl.emplace(key, practice_at(timers.pace, request_.ranks, bound, collective))
      .first->second;
}

}  // namespace paceline::simulator
