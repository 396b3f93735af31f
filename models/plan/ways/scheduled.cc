// Tests: tests/models/strategy_test.cc, tests/models/plan_json_test.cc.
#include "models/plan/ways/scheduled.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/error.h"
#include "models/base/json_reader.h"
#include "models/collective/algorithms.h"
#include "models/plan/ways/documents.h"
#include "models/plan/ways/plan_in_making.h"

namespace paceline::models {
namespace {

// The options of an algorithm. An option that is 0 is left to the algorithm's default.
struct Option {
  const char* key;
  int ScheduleOptions::*value;
  bool CollectiveAlgorithm::*is_taken;
};
constexpr Option document_options[] = {
    {"group", &ScheduleOptions::group_size, &CollectiveAlgorithm::takes_group},
    {"segments", &ScheduleOptions::segments, &CollectiveAlgorithm::takes_segments},
    {"rings", &ScheduleOptions::rings, &CollectiveAlgorithm::takes_rings},
    {"servers", &ScheduleOptions::servers, &CollectiveAlgorithm::takes_servers}};

Json json(const PlannedSchedule& planned) {
  Json json = {{"algorithm", planned.algorithm}};
  for (const Option& option : document_options) {
    if (planned.options.*option.value != 0) json[option.key] = planned.options.*option.value;
  }
  // Rank 0 is a server like any other, so that 0 is no default here.
  if (all_reduce_algorithm(planned.algorithm).takes_servers)
    json["first_server"] = planned.options.first_server;
  return json;
}

PlannedSchedule read(const JsonValue& entry, std::string_view /*strategy*/, int ranks) {
  const CollectiveAlgorithm& algorithm = *entry.at("algorithm").named([](const std::string& text) {
    return &all_reduce_algorithm(text);
  });
  ScheduleOptions read{.ranks = ranks};
  std::vector<std::string> keys = {"algorithm"};
  for (const Option& option : document_options) {
    if (!(algorithm.*option.is_taken)) continue;
    keys.emplace_back(option.key);
    if (entry.has(option.key)) read.*option.value = entry.at(option.key).count(1, max_ranks);
  }
  if (algorithm.takes_servers) {
    keys.emplace_back("first_server");
    read.first_server = entry.at("first_server").count(0, ranks - 1);
  }
  entry.check_keys(keys);
  try {
    return scheduled(algorithm.name, read);
  } catch (const InputError& error) {
    entry.fail(error.problem(), error.remedy());
  }
}

std::string in_words(const PlannedSchedule& schedule) {
  return described(schedule.algorithm, schedule.options);
}

}  // namespace

const WayDocument scheduled_document = {"algorithm", json, read, nullptr, in_words};

bool Scheduled::allows(const PlannedSchedule& schedule) const {
  return schedule.has_steps() && schedule.algorithm == algorithm;
}

int Scheduled::schedule_of(const Bucket& /*bucket*/, PlanInMaking& plan) const {
  return plan.place_of(algorithm, plan.options());
}

bool Hybrid::allows(const PlannedSchedule& schedule) const {
  return Scheduled{small}.allows(schedule) || Scheduled{large}.allows(schedule);
}

std::string Hybrid::allowed() const {
  return fmt::format("{} or {}", small, large);
}

int Hybrid::schedule_of(const Bucket& bucket, PlanInMaking& plan) const {
  const bool is_small = plan.plan.bytes(bucket) <= plan.thresholds.hybrid;
  return plan.place_of(is_small ? small : large, plan.options());
}

bool OnServers::allows(const PlannedSchedule& schedule) const {
  return Scheduled{algorithm}.allows(schedule);
}

void OnServers::check(int ranks, const Thresholds& thresholds) const {
  check_server_count(thresholds.servers, ranks);
}

int OnServers::schedule_of(const Bucket& bucket, PlanInMaking& plan) const {
  const Thresholds& chosen = plan.thresholds;
  ScheduleOptions options = plan.options();
  options.first_server = server_rank(plan.next_server(bucket.elements, chosen.placement),
                                     plan.plan.ranks, chosen.servers);
  return plan.place_of(algorithm, options);
}

}  // namespace paceline::models
