// Tests: tests/runtime/loop/gradient_exchange_test.cc, tests/runtime/loop/tensor_training_test.cc.
#include "runtime/exchange/bucket_collectives.h"

#include <fmt/core.h>

#include <bit>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/algorithms.h"
#include "models/collective/combinators.h"
#include "models/plan/strategy.h"

namespace paceline::runtime {
namespace {

// The collective of a plan's ranks between those that have the same part of the tensors.
models::PlannedSchedule across(models::PlannedSchedule planned, const models::Plan& plan) {
  if (plan.layout.tensor == 1) return planned;
  if (!planned.has_steps())
    throw InputError(
        fmt::format("{} sums over all ranks, and not those with the same part of the tensors",
                    planned.algorithm),
        "choose a strategy with a schedule, such as fused-ring");
  const int all = plan.all_ranks();
  planned.way =
      models::within(all, models::across_blocks(all, plan.layout.tensor), planned.schedule());
  planned.options.ranks = all;
  return planned;
}

}  // namespace

void check_runnable(const models::Plan& plan, std::span<const ParameterPlace> parameters,
                    int ranks) {
  if (plan.all_ranks() != ranks)
    throw InputError(fmt::format("a plan for {} ranks, and {} ranks", plan.all_ranks(), ranks),
                     "make the plan for the ranks that run it");
  if (!plan.layout.is_data_and_tensor())
    throw InputError("a plan of a layout that cannot be run, only predicted",
                     "leave out all axes but --tensor, and add --no-sequence-parallel");
  if (plan.overlap == models::Overlap::priority)
    throw InputError("overlap priority cannot be run, only predicted",
                     "choose wait-free, double-buffered or none");
  models::check_overlap(models::strategy(plan.strategy), plan.overlap);
  const auto* const use = plan.uses<models::ShardUse>();
  if (use != nullptr && plan.ranks % use->shards != 0)
    throw InputError(fmt::format("{} shards for {} ranks", use->shards, plan.ranks),
                     "make the plan for the ranks that run it");
  std::size_t next = 0;
  for (const models::Bucket& bucket : plan.buckets) {
    std::int64_t elements = 0;
    for (int i = 0; i < bucket.gradient_count && next < parameters.size(); ++i)
      elements += parameters[next++].elements;
    if (elements != bucket.elements)
      throw InputError("the plan's buckets are not of this network's gradients",
                       "make the plan for this network");
  }
  if (next != parameters.size())
    throw InputError("the plan leaves gradients out", "make the plan for this network");
}

models::PlannedSchedule bucket_sum(const models::Plan& plan, const models::Bucket& bucket) {
  const auto* const use = plan.uses<models::ShardUse>();
  if (use == nullptr) return across(plan.schedules[to_size(bucket.schedule)], plan);
  return across({"reduce-scatter",
                 {.ranks = plan.ranks, .group_size = use->shards},
                 models::grouped_reduce_scatter(plan.ranks, use->shards)},
                plan);
}

models::PlannedSchedule bucket_gather(const models::Plan& plan) {
  const int shards = plan.uses<models::ShardUse>()->shards;
  return across({"all-gather",
                 {.ranks = plan.ranks, .group_size = shards},
                 models::grouped_all_gather(plan.ranks, shards)},
                plan);
}

models::PlannedSchedule neighbour_sum(const models::Plan& plan) {
  const int all = plan.all_ranks();
  const int tensor = plan.layout.tensor;
  const bool can_halve = std::has_single_bit(static_cast<unsigned>(tensor));
  return {"all-reduce",
          {.ranks = all, .group_size = tensor},
          models::within(all, models::blocks(all, tensor),
                         can_halve ? models::halving_doubling_all_reduce(tensor)
                                   : models::ring_all_reduce(tensor))};
}

}  // namespace paceline::runtime
