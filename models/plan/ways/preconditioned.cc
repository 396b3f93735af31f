// Tests: tests/models/k_fac_test.cc, tests/models/plan_json_test.cc.
#include "models/plan/ways/preconditioned.h"

#include <fmt/format.h>

#include "models/base/json_reader.h"
#include "models/plan/ways/documents.h"
#include "models/plan/ways/plan_in_making.h"

namespace paceline::models {
namespace {

Json json(const PlannedSchedule& planned) {
  const auto& use = std::get<KfacUse>(planned.way);
  return {{"owners", name(use.owners)}, {"factors_every", use.factors_every}};
}

PlannedSchedule read(const JsonValue& entry, std::string_view strategy, int ranks) {
  entry.check_keys({"owners", "factors_every"});
  KfacUse use;
  use.owners = entry.at("owners").named(
      [](const std::string& text) { return server_placement_from_name(text); });
  use.factors_every = entry.at("factors_every").count(1, most_factors_every);
  return {std::string(strategy), {.ranks = ranks}, use};
}

// All gradients travel together, in whole, and at once.
void check(const JsonValue& root, const Plan& plan) {
  if (plan.overlap != Overlap::wait_free && plan.overlap != Overlap::none)
    root.at("overlap").fail(fmt::format("k-fac has no overlap {}", name(plan.overlap)),
                            "write wait-free or none");
  if (plan.buckets.size() != 1)
    root.at("buckets").fail(fmt::format("{} buckets of k-fac", plan.buckets.size()),
                            "write one, with all gradients");
  if (plan.streams != 1)
    root.at("streams").fail(fmt::format("{} streams of k-fac", plan.streams), "write 1");
  if (plan.dispatch != Dispatch{} || plan.buckets.front().wait != Seconds{0})
    root.fail("k-fac has no dispatch, and its bucket no wait", "leave them out");
}

std::string in_words(const PlannedSchedule& schedule) {
  const auto& use = std::get<KfacUse>(schedule.way);
  return fmt::format("{}, owners {}, factors every {}", schedule.algorithm, name(use.owners),
                     use.factors_every);
}

}  // namespace

const WayDocument k_fac_document = {"owners", json, read, check, in_words};

bool Preconditioned::allows(const PlannedSchedule& schedule) const {
  return std::holds_alternative<KfacUse>(schedule.way);
}

int Preconditioned::schedule_of(const Bucket& /*bucket*/, PlanInMaking& plan) const {
  return plan.place_of({plan.plan.strategy,
                        {.ranks = plan.plan.ranks},
                        KfacUse{plan.thresholds.factors_every, plan.thresholds.placement}});
}

}  // namespace paceline::models
