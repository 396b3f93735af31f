// Mixtures of experts on several ranks, and FP8: memory against measured peaks, what travels, and how long it takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>

#include "models/cluster/catalog.h"
#include "models/layout/rank_work.h"
#include "models/network/decoder.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "simulator/cost/device_memory.h"
#include "simulator/prediction/prediction.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

using ::testing::HasSubstr;

struct Asked {
  std::string network = "mixtral-8x7b";
  std::string cluster = "h200-ndr";
  int ranks = 16;
  models::Layout layout = {};
  models::Precision precision = models::Precision::mixed;
};

StrategyPrediction predicted(const Asked& asked, const char* strategy = "zero1") {
  const models::NetworkWork network = models::work(models::zoo_network(asked.network));
  const models::Cluster cluster = models::catalog_cluster(asked.cluster);
  PredictionOptions options;
  options.batch_per_rank = 1;
  options.layout = asked.layout;
  options.precision = asked.precision;
  Predictor predictor({options, network, cluster, nullptr, asked.ranks, models::WireType::bf16});
  return predictor.predict(models::strategy(strategy));
}

// SimuMax v1.2 on 8 B200: DeepSeek-V3 cut to 4 blocks, the first of them dense (lines 27 and 28 of its summary).
TEST(ExpertMemory, IsWithinFivePercentOfMeasuredPeaks) {
  const models::NetworkWork network =
      models::work(models::decoder({.name = "deepseek-v3 cut to 4",
                                    .blocks = 4,
                                    .features = 7168,
                                    .heads = 128,
                                    .key_value_heads = 128,
                                    .head_features = 128,
                                    .inner = 18432,
                                    .vocabulary = 129280,
                                    .sequence = 4096,
                                    .has_gate = true,
                                    .latent = {1536, 512, 64, 128},
                                    .experts = {.count = 256,
                                                .active = 8,
                                                .inner = 2048,
                                                .shared_inner = 2048,
                                                .bias = true,
                                                .dense_blocks = 1}}));
  for (const auto& [layout, gibi] :
       {std::pair{models::Layout{.expert = 8}, 104.3}, {{.expert = 4, .pipeline = 2}, 114.0}}) {
    const models::NetworkWork of_rank = models::rank_work(network, layout).network;
    models::Plan plan = models::make_plan(models::strategy("zero1"), of_rank.gradients,
                                          8 / layout.ranks_of_copy(), models::WireType::fp32, {});
    plan.layout = layout;
    const DeviceMemory memory = device_memory({.network = network,
                                               .plan = plan,
                                               .precision = models::Precision::mixed,
                                               .batch_per_rank = 1,
                                               .accumulate = 4});
    EXPECT_NEAR(memory.total().value() / (1024.0 * 1024 * 1024) / gibi, 1, 0.05);
  }
}

// Whatever ranks have which experts, each parameter has one master among all ranks of a copy.
RC_GTEST_PROP(ExpertMemory, MastersAreThereOnce, ()) {
  const int ranks = 1 << *rc::gen::inRange(1, 6);
  const int expert = 1 << *rc::gen::inRange(0, 4);
  if (ranks % expert != 0) return;
  const models::NetworkWork network = models::work(models::zoo_network("mixtral-8x7b"));
  const models::Layout layout{.expert = expert};
  const models::NetworkWork of_rank = models::rank_work(network, layout).network;
  models::Plan plan = models::make_plan(models::strategy("zero1"), of_rank.gradients, ranks,
                                        models::WireType::bf16, {});
  plan.layout = layout;
  const DeviceMemory memory = device_memory({.network = network,
                                             .plan = plan,
                                             .precision = models::Precision::mixed,
                                             .batch_per_rank = 1});
  const double all = ranks * memory.masters.value() / 4;
  RC_ASSERT(std::abs(all / static_cast<double>(network.parameters()) - 1) < 1e-9);
}

TEST(Experts, NoBucketHasGradientsOfTwoGroupsOfRanks) {
  for (const char* strategy : {"zero1", "zero2", "fsdp"}) {
    const models::NetworkWork of_rank =
        models::rank_work(models::work(models::zoo_network("deepseek-v3")), {.expert = 32}).network;
    const models::Plan plan = models::make_plan(models::strategy(strategy), of_rank.gradients, 64,
                                                models::WireType::bf16, {});
    for (const models::Bucket& bucket : plan.buckets)
      for (int i = 0; i < bucket.gradient_count; ++i)
        EXPECT_EQ(of_rank.gradients[to_size(bucket.first_gradient + i)].parts,
                  of_rank.gradients[to_size(bucket.first_gradient)].parts);
  }
}

// With as many experts' groups as ranks, experts' gradients go nowhere, and tokens do.
TEST(Experts, TradeTheirGradientsForTokens) {
  const StrategyPrediction whole = predicted({.ranks = 8});
  const StrategyPrediction apart = predicted({.ranks = 8, .layout = {.expert = 8}});
  EXPECT_EQ(whole.spent.exchange, Seconds{0});
  EXPECT_GT(apart.spent.exchange, Seconds{0});
  EXPECT_LT(apart.memory.parameters, 0.3 * whole.memory.parameters);
  // Experts are 45.1 of 46.7 billion parameters, of which a rank updates an eighth in both.
  EXPECT_NEAR(apart.memory.masters / whole.memory.masters, 1, 1e-9);
  EXPECT_LE(apart.iteration.low, apart.iteration.value);
  EXPECT_GT(apart.iteration.high, apart.iteration.value);
}

// Tokens leave a node, and cost more there.
TEST(Experts, AcrossNodesTokensTakeLonger) {
  const auto exchange = [](int expert) {
    const StrategyPrediction made =
        predicted({.network = "qwen3-30b-a3b", .ranks = 64, .layout = {.expert = expert}}, "zero1");
    return made.spent.exchange;
  };
  EXPECT_GT(exchange(16), 1.5 * exchange(8));
}

// A token with eight experts on four nodes goes to 3.6 nodes in the mean, in place of eight experts.
TEST(Experts, TokensThatAreSentOnceTakeLess) {
  const auto exchange = [](bool is_once) {
    return predicted({.network = "qwen3-30b-a3b",
                      .ranks = 32,
                      .layout = {.expert = 32, .tokens_once = is_once}})
        .spent.exchange;
  };
  EXPECT_LT(exchange(true), 0.7 * exchange(false));
  EXPECT_GT(exchange(true), 0.4 * exchange(false));
}

TEST(Experts, AllReducesOverAllRanksAreRefused) {
  EXPECT_THAT(test::error_of([] { (void)predicted({.layout = {.expert = 8}}, "fused-ring"); }),
              HasSubstr("--strategy: fused-ring sums the gradients of all experts over all ranks"));
}

TEST(Fp8, IsFasterByLessThanItsProductsAre) {
  for (const char* network : {"llama-2-7b", "llama-3-8b", "qwen3-30b-a3b"}) {
    const StrategyPrediction mixed = predicted({.network = network});
    const StrategyPrediction eight =
        predicted({.network = network, .precision = models::Precision::fp8});
    const double gain = mixed.iteration.value / eight.iteration.value;
    // Small experts gain less than their tokens' casts cost.
    EXPECT_GT(gain, network == std::string("qwen3-30b-a3b") ? 0.95 : 1.1) << network;
    EXPECT_LT(gain, 1.55) << network;
    EXPECT_EQ(mixed.memory.total(), eight.memory.total()) << network;
  }
}

TEST(Fp8, IsRefusedWhereNoRateIsKnown) {
  const auto error = [](const Asked& asked) {
    return test::error_of([&] { (void)predicted(asked); });
  };
  EXPECT_THAT(error({.network = "llama-2-7b",
                     .cluster = "dgx-a100-hdr",
                     .precision = models::Precision::fp8}),
              HasSubstr("--precision: no rate of fp8 is known for the device a100"));
  EXPECT_THAT(error({.network = "resnet50", .precision = models::Precision::fp8}),
              HasSubstr("--precision: fp8 is predicted for networks with fused attention"));
}

}  // namespace
}  // namespace paceline::simulator
