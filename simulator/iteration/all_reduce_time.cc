// Tests: tests/simulator/all_reduce_time_test.cc.
#include "simulator/iteration/all_reduce_time.h"

#include <algorithm>
#include <array>
#include <functional>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/cluster/placement.h"
#include "models/collective/catalogue.h"
#include "simulator/cost/library_curve.h"
#include "simulator/engine/effort.h"

namespace paceline::simulator {
namespace {

constexpr std::array readings = {Reading::stated, Reading::fast, Reading::slow};

constexpr std::array<std::pair<std::string_view, std::optional<NcclAlgorithm>>, 3> nccl_names = {
    {{"nccl", std::nullopt},
     {"nccl-ring", NcclAlgorithm::ring},
     {"nccl-tree", NcclAlgorithm::tree}}};

// A time is within its interval, also where a piece of the model is not monotonic.
AllReduceTime with_interval(const std::function<Seconds(Reading)>& time, std::string timed_by) {
  const Seconds stated = time(Reading::stated);
  return {.time = {stated, std::min(time(Reading::fast), stated),
                   std::max(time(Reading::slow), stated), Provenance::predicted, timed_by},
          .timed_by = timed_by};
}

}  // namespace

std::optional<NcclAllReduce> nccl_all_reduce(std::string_view name) {
  for (const auto& [known, only] : nccl_names) {
    if (known == name) return NcclAllReduce{only};
  }
  return std::nullopt;
}

std::vector<std::string> nccl_all_reduce_names() {
  std::vector<std::string> names;
  for (const auto& [name, only] : nccl_names) names.emplace_back(name);
  return names;
}

AllReduceTimer::AllReduceTimer(const AllReduceRequest& request) : request_(request) {
  models::check_ranks(request.cluster, request.ranks);
  for (const Reading reading : readings)
    engines_.emplace(
        reading,
        CollectiveTimer(
            communication_cost(request.cluster, request.profile, reading, request.ranks),
            request.engine,
            request.haste == Haste::in_time ? most_prepared_in_time : most_prepared_messages));
}

AllReduceTime AllReduceTimer::by_engine(const models::PlannedSchedule& schedule, Bytes bytes) {
  const auto time = [&](Reading reading) { return engines_.at(reading).time(schedule, bytes); };
  return with_interval(time, described(engines_.at(Reading::stated).engine(schedule)));
}

AllReduceTime AllReduceTimer::by_nccl(NcclAllReduce all_reduce, Bytes bytes) {
  const auto time = [&](Reading reading) { return practice(reading).time(bytes, all_reduce.only); };
  return with_interval(time, described(practice(Reading::stated)));
}

std::optional<AllReduceTime> AllReduceTimer::by_curve(models::Library library, Bytes bytes) const {
  const LibraryJob job{request_.ranks, request_.ranks > request_.cluster.ranks_per_node,
                       request_.wire};
  const auto stated = LibraryCurve::find(request_.profile, library, job, Reading::stated);
  if (!stated) return std::nullopt;
  const auto time = [&](Reading reading) {
    return LibraryCurve::find(request_.profile, library, job, reading)->time(bytes);
  };
  return with_interval(time, stated->described(bytes, bytes));
}

AllReduceTime AllReduceTimer::by_name(std::string_view algorithm, models::ScheduleOptions options,
                                      Bytes bytes) {
  if (const auto all_reduce = nccl_all_reduce(algorithm)) return by_nccl(*all_reduce, bytes);
  options.ranks = request_.ranks;
  return by_engine(planned_all_reduce(algorithm, options), bytes);
}

const NcclModel& AllReduceTimer::nccl_model() {
  return practice(Reading::stated).model();
}

double AllReduceTimer::followed(const models::PlannedSchedule& schedule) {
  CollectiveTimer& engine = engines_.at(Reading::stated);
  if (engine.engine(schedule) != EngineKind::flow) return 0;
  return readings.size() * followed_messages(schedule.schedule, engine.cost());
}

const NcclPractice& AllReduceTimer::practice(Reading reading) {
  const auto known = nccl_.find(reading);
  if (known != nccl_.end()) return known->second;
  const NcclTables tables =
      nccl_tables(request_.nccl_version.empty() ? nccl_versions().back() : request_.nccl_version);
  return nccl_
      .emplace(reading, NcclPractice(tables, request_.cluster, request_.ranks,
                                     engines_.at(reading).cost(), reading))
      .first->second;
}

models::PlannedSchedule planned_all_reduce(std::string_view algorithm,
                                           const models::ScheduleOptions& options) {
  std::vector<std::string> known = nccl_all_reduce_names();
  const models::CollectiveAlgorithm* found = nullptr;
  for (const models::CollectiveAlgorithm& entry : models::all_reduce_catalogue()) {
    known.emplace_back(entry.name);
    if (entry.name == algorithm) found = &entry;
  }
  if (found == nullptr) throw unknown_name("all-reduce", algorithm, known);
  const models::ScheduleOptions taken = models::taken_options(*found, options);
  return {std::string(found->name), taken, found->build(taken)};
}

}  // namespace paceline::simulator
