// Tests: tests/models/strategy_test.cc.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/collective/catalogue.h"
#include "models/plan/strategy.h"
#include "models/plan/tuned.h"
#include "models/plan/ways/plan_in_making.h"

namespace paceline::models {
namespace {

// Each part is a bucket of the plan, so that there may be no more than a plan has room for.
void check_parts(std::span<const Gradient> gradients, std::int64_t part, Bytes partition) {
  constexpr std::int64_t most_parts = 100'000;
  std::int64_t parts = 0;
  for (const Gradient& gradient : gradients) parts += (gradient.elements - 1) / part + 1;
  if (parts > most_parts)
    throw InputError(
        fmt::format("partitions of {} cut the gradients into {} parts", to_text(partition), parts),
        fmt::format("choose a size that gives at most {}", most_parts));
}

// Cuts each gradient by itself into parts of this many elements and a last one.
template <class Add>
void cut_into_parts(std::span<const Gradient> gradients, std::int64_t part, Add add) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    for (std::int64_t first = 0; first < gradients[i].elements; first += part)
      add(Bucket{.first_gradient = static_cast<int>(i),
                 .gradient_count = 1,
                 .elements = std::min(part, gradients[i].elements - first),
                 .first_element = first});
  }
}

// Joins gradients until a bucket holds theta or more, and those of a block that is gathered together. Inductor lets no bucket grow beyond theta.
template <class Add>
void join_up_to_theta(const Strategy& strategy, std::span<const Gradient> gradients,
                      const Thresholds& thresholds, const Plan& plan, Add add) {
  constexpr Bytes whole{1e300};
  const Bytes theta = strategy.traits().in_one_bucket ? whole
                      : strategy.takes_fusion()       ? thresholds.fusion
                                                      : Bytes{0};
  const bool by_blocks = strategy.sharded() != nullptr && strategy.sharded()->gathers();
  const bool closes_before = strategy.other && strategy.other->system == System::inductor;
  // Whether the bucket waits for the gradient behind it.
  const auto stays_open = [&](Bucket bucket, const Gradient& next) {
    const Bytes limit =
        plan.buckets.empty() && theta > Bytes{0} ? thresholds.first_fusion.value_or(theta) : theta;
    if (!closes_before) return plan.bytes(bucket) < limit;
    bucket.elements += next.elements;
    return plan.bytes(bucket) <= limit;
  };
  Bucket open;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    open.elements += gradients[i].elements;
    ++open.gradient_count;
    if (i + 1 < gradients.size() && gradients[i].travels_with(gradients[i + 1])) {
      const bool same_block =
          by_blocks && block_of(gradients[i].name) == block_of(gradients[i + 1].name);
      if (same_block || stays_open(open, gradients[i + 1])) continue;
    }
    add(open);
    open = Bucket{.first_gradient = static_cast<int>(i) + 1};
  }
}

void check_makes_plans(const Strategy& strategy, int ranks, const Thresholds& thresholds) {
  if (is_tuned(strategy))
    throw InputError({"--strategy"}, "a tuned plan is made bucket by bucket",
                     "let paceline tune --plan-out write it, and give it by --plan");
  check_rank_count(ranks);
  std::visit([&](const auto& way) { way.check(ranks, thresholds); }, strategy.all_reduce);
}

}  // namespace

Plan make_plan(const Strategy& strategy, std::span<const Gradient> gradients, int ranks,
               WireType wire, const Thresholds& thresholds) {
  check_makes_plans(strategy, ranks, thresholds);
  Plan plan{.strategy = std::string(strategy.name),
            .ranks = ranks,
            .wire = wire,
            .overlap = strategy.overlap,
            .streams = std::max(1, thresholds.streams),
            .schedules = {},
            .buckets = {},
            .dispatch = thresholds.dispatch};
  PlanInMaking making(plan, thresholds, std::ssize(gradients));
  const auto add = [&](Bucket bucket) {
    bucket.schedule = std::visit([&](const auto& way) { return way.schedule_of(bucket, making); },
                                 strategy.all_reduce);
    plan.buckets.push_back(bucket);
  };
  if (thresholds.partition > Bytes{0}) {
    const auto part =
        std::max<std::int64_t>(1, std::llround(thresholds.partition / element_size(wire)));
    check_parts(gradients, part, thresholds.partition);
    cut_into_parts(gradients, part, add);
  } else {
    join_up_to_theta(strategy, gradients, thresholds, plan, add);
  }
  if (strategy.traits().all_at_once)
    plan.streams = std::max<int>(1, static_cast<int>(plan.buckets.size()));
  if (strategy.traits().in_one_bucket) plan.streams = 1;
  return plan;
}

}  // namespace paceline::models
