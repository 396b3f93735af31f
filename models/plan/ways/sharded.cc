// Tests: tests/models/sharding_test.cc, tests/models/plan_json_test.cc.
#include "models/plan/ways/sharded.h"

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/json_reader.h"
#include "models/plan/ways/documents.h"
#include "models/plan/ways/plan_in_making.h"

namespace paceline::models {
namespace {

Json json(const PlannedSchedule& planned) {
  const auto& use = std::get<ShardUse>(planned.way);
  return {
      {"sharding", name(use.kind)}, {"shards", use.shards}, {"reshard_after_forward", use.reshard}};
}

PlannedSchedule read(const JsonValue& entry, std::string_view strategy, int ranks) {
  entry.check_keys({"sharding", "shards", "reshard_after_forward"});
  ShardUse use;
  use.kind =
      entry.at("sharding").named([](const std::string& text) { return sharding_from_name(text); });
  use.shards = entry.at("shards").count(1, ranks);
  if (ranks % use.shards != 0)
    entry.at("shards").fail(fmt::format("{} shards do not divide {} ranks", use.shards, ranks),
                            "write a divisor of the ranks");
  use.reshard = entry.at("reshard_after_forward").flag();
  return {std::string(strategy), {.ranks = ranks}, use};
}

// Parameters of a bucket are gathered and dropped together, and the update waits for all.
void check(const JsonValue& root, const Plan& plan) {
  if (plan.overlap != Overlap::wait_free && plan.overlap != Overlap::none)
    root.at("overlap").fail(fmt::format("{} has no overlap {}", plan.strategy, name(plan.overlap)),
                            "write wait-free or none");
  if (plan.schedules.size() != 1)
    root.at("all_reduces").fail("a sharded plan is sharded in one way", "write one entry");
  if (plan.streams != 1)
    root.at("streams").fail(fmt::format("{} streams of {}", plan.streams, plan.strategy),
                            "write 1");
  for (const Bucket& bucket : plan.buckets)
    if (bucket.wait != Seconds{0} || bucket.first_element != 0 || plan.dispatch != Dispatch{})
      root.fail("a sharded plan has whole gradients, no wait and no dispatch", "leave them out");
}

std::string in_words(const PlannedSchedule& schedule) {
  const auto& use = std::get<ShardUse>(schedule.way);
  const int replicas = schedule.options.ranks / use.shards;
  return fmt::format("{}, {} shards{}{}", name(use.kind), use.shards,
                     replicas > 1 ? fmt::format(" in each of {} replicas", replicas) : "",
                     use.reshard ? "" : ", gathered until the backward pass");
}

}  // namespace

const WayDocument sharded_document = {"sharding", json, read, check, in_words};

bool Sharded::allows(const PlannedSchedule& schedule) const {
  const auto* use = std::get_if<ShardUse>(&schedule.way);
  return use != nullptr && use->kind == kind &&
         (in_groups || use->shards == schedule.options.ranks);
}

void Sharded::check(int ranks, const Thresholds& thresholds) const {
  if (!in_groups || ranks % thresholds.group_size == 0) return;
  throw InputError({"--group"},
                   fmt::format("groups of {} do not divide {} ranks", thresholds.group_size, ranks),
                   "choose a divisor of the ranks");
}

int Sharded::schedule_of(const Bucket& /*bucket*/, PlanInMaking& plan) const {
  const int ranks = plan.plan.ranks;
  return plan.place_of({plan.plan.strategy,
                        {.ranks = ranks},
                        ShardUse{.kind = kind,
                                 .shards = in_groups ? plan.thresholds.group_size : ranks,
                                 .reshard = plan.thresholds.reshard || !gathers()}});
}

}  // namespace paceline::models
