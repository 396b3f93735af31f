// Placements of tensors, the shardings that are made of them, and plans that use them.
#include "models/layout/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "models/network/zoo.h"
#include "models/plan/plan_json.h"
#include "models/plan/strategy.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

using P = TensorPlacement;

TEST(TensorPlacement, AChangeOfPlacementIsACollective) {
  EXPECT_EQ(collective_between(P::partial, P::replicated), Collective::all_reduce);
  EXPECT_EQ(collective_between(P::partial, P::split), Collective::reduce_scatter);
  EXPECT_EQ(collective_between(P::split, P::replicated), Collective::all_gather);
  EXPECT_EQ(collective_between(P::replicated, P::split), std::nullopt);
  for (const P same : {P::replicated, P::split})
    EXPECT_EQ(collective_between(same, same), std::nullopt);
}

// ZeRO (arXiv 1910.02054), 7: stages 1 and 2 move as much as an all-reduce does, a reduce-scatter and an
// all-gather; stage 3 gathers parameters before passes and none after the update.
TEST(Sharding, WhatTravelsFollowsFromThePlacements) {
  const Sharding& none = sharding(ShardingKind::none);
  EXPECT_EQ(none.of_gradients(), Collective::all_reduce);
  EXPECT_FALSE(none.before_pass() || none.after_update() || none.sums_in_each_pass());
  for (const ShardingKind kind : {ShardingKind::zero1, ShardingKind::zero2}) {
    const Sharding& zero = sharding(kind);
    EXPECT_EQ(zero.of_gradients(), Collective::reduce_scatter);
    EXPECT_EQ(zero.after_update(), Collective::all_gather);
    EXPECT_EQ(zero.before_pass(), std::nullopt);
    EXPECT_EQ(zero.sums_in_each_pass(), kind == ShardingKind::zero2);
  }
  const Sharding& zero3 = sharding(ShardingKind::zero3);
  EXPECT_EQ(zero3.of_gradients(), Collective::reduce_scatter);
  EXPECT_EQ(zero3.before_pass(), Collective::all_gather);
  EXPECT_EQ(zero3.after_update(), std::nullopt);
}

TEST(Sharding, NamesGoBothWays) {
  for (const Sharding& row : shardings()) EXPECT_EQ(sharding_from_name(row.name), row.kind);
  EXPECT_EQ(test::error_of([] { (void)sharding_from_name("zero4"); }),
            "unknown sharding 'zero4'; did you mean 'zero1'?");
}

TEST(Blocks, ABlockEndsAtTheFirstNumber) {
  EXPECT_EQ(block_of("h3.attn.qkv"), "h3");
  EXPECT_EQ(block_of("layer12.query.weight"), "layer12");
  EXPECT_EQ(block_of("layers.7.mlp"), "layers.7");
  EXPECT_EQ(block_of("norm"), "");
  EXPECT_EQ(block_of("logits.weight"), "");
}

Plan plan_of(const NetworkWork& network, std::string_view name, int ranks,
             const Thresholds& thresholds = {}) {
  return make_plan(strategy(name), network.gradients, ranks, WireType::fp16, thresholds);
}

TEST(ShardedPlan, AUnitOfFsdpIsABlock) {
  const NetworkWork network = work(zoo_network("llama-3-8b"));
  const Plan plan = plan_of(network, "fsdp", 64);
  // 32 blocks, the embedding, and the norm with the head.
  ASSERT_EQ(plan.buckets.size(), 34U);
  int gradients = 0;
  for (const Bucket& bucket : plan.buckets) {
    std::set<std::string_view> blocks;
    for (int i = 0; i < bucket.gradient_count; ++i)
      blocks.insert(block_of(network.gradients[static_cast<std::size_t>(gradients + i)].name));
    EXPECT_EQ(blocks.size(), 1U);
    gradients += bucket.gradient_count;
  }
  EXPECT_EQ(gradients, static_cast<int>(network.gradients.size()));
  const auto* use = plan.uses<ShardUse>();
  ASSERT_NE(use, nullptr);
  EXPECT_EQ(*use, (ShardUse{ShardingKind::zero3, 64, true}));
  EXPECT_TRUE(plan.is_of_other_system());
}

TEST(ShardedPlan, GroupsDivideTheRanks) {
  const NetworkWork network = work(zoo_network("gpt2-small"));
  EXPECT_EQ(plan_of(network, "hsdp", 64, {.group_size = 8}).uses<ShardUse>()->shards, 8);
  EXPECT_EQ(test::error_of([&] { (void)plan_of(network, "hsdp", 64, {.group_size = 7}); }),
            "--group: groups of 7 do not divide 64 ranks; choose a divisor of the ranks");
}

TEST(ShardedPlan, GoesBothWaysAsADocument) {
  const NetworkWork network = work(zoo_network("gpt2-small"));
  for (const char* name : {"zero1", "zero2", "fsdp", "hsdp"}) {
    const Plan plan = plan_of(network, name, 16, {.group_size = 8, .reshard = false});
    const std::string text = to_json(plan_document(plan, network));
    EXPECT_EQ(parse_plan(text, "plan").plan, plan) << name;
  }
}

// The text of a plan of FSDP with one part of it replaced.
std::string error_with(const std::string& from, const std::string& to) {
  const NetworkWork network = work(zoo_network("gpt2-small"));
  std::string text = to_json(plan_document(plan_of(network, "fsdp", 16), network));
  text.replace(text.find(from), from.size(), to);
  return test::error_of([&] { (void)parse_plan(text, "p"); });
}

TEST(ShardedPlan, ADamagedDocumentIsOneLine) {
  EXPECT_THAT(error_with("\"shards\": 16", "\"shards\": 5"),
              testing::HasSubstr("5 shards do not divide 16 ranks; write a divisor of the ranks"));
  EXPECT_THAT(error_with("\"zero3\"", "\"zero1\""),
              testing::HasSubstr("strategy fsdp does not use 'sharding'; write zero3"));
  EXPECT_THAT(error_with("\"wait-free\"", "\"priority\""),
              testing::HasSubstr("fsdp has no overlap priority; write wait-free or none"));
  EXPECT_THAT(error_with("\"streams\": 1", "\"streams\": 2"), testing::HasSubstr("write 1"));
}

}  // namespace
}  // namespace paceline::models
