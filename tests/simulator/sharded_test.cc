// Sharded training: its DAG against times worked out by hand, what it moves, its groups, and its memory
// against the counts of shared/reference/sharded.md.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "simulator/cost/device_memory.h"
#include "simulator/iteration/dag.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/planner/group_timers.h"
#include "simulator/prediction/prediction.h"
#include "tests/support/error_of.h"
#include "tests/support/generators.h"

namespace paceline::simulator {
namespace {

using models::Recompute;
using models::ShardUse;

constexpr int blocks = 4;

// Blocks of one linear layer, between an embedding and a head.
models::NetworkWork toy() {
  models::NetworkBuilder net("toy", models::Shape::sequence(4));
  net.add("tokens", models::Embedding{.entries = 10, .features = 8});
  for (int i = 0; i < blocks; ++i)
    net.add("h" + std::to_string(i) + ".linear", models::Linear{.outputs = 8});
  net.add("logits", models::Linear{.outputs = 10});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return models::work(net.build());
}

// Each pass of a layer takes a second, each collective and each copy what is given.
struct Job {
  models::NetworkWork network = toy();
  std::string strategy = "fsdp";
  models::Thresholds thresholds = {};
  ShardTimes times = {};
  models::Overlap overlap = models::Overlap::wait_free;
  int repeated = 0;

  [[nodiscard]] IterationDag dag() const {
    models::Plan plan = models::make_plan(models::strategy(strategy), network.gradients, 8,
                                          models::WireType::fp16, thresholds);
    plan.overlap = overlap;
    ComputeTimes compute;
    compute.layers.assign(network.layers.size(), {Seconds{1}, Seconds{2}});
    compute.repeated = repeated;
    std::vector<BucketTimes> buckets(plan.buckets.size());
    for (BucketTimes& bucket : buckets) bucket.by_way = times;
    return {network, plan, compute, buckets, InputTimes{}};
  }
  [[nodiscard]] double period() const { return steady_state(dag()).period.value(); }
};

ShardTimes collectives(double gather, double reduce) {
  ShardTimes times;
  times.gather = Seconds{gather};
  times.reduce = Seconds{reduce};
  return times;
}

constexpr int layers = blocks + 3;
constexpr double computed = 3 * layers;
constexpr int units = blocks + 2;  // with the embedding, and the head

TEST(ShardedDag, WithoutCommunicationItIsTheComputation) {
  for (const char* strategy : {"zero1", "zero2", "fsdp"}) {
    Job job;
    job.strategy = strategy;
    EXPECT_DOUBLE_EQ(job.period(), computed) << strategy;
  }
}

// All units are gathered before the forward pass, and the blocks again before the backward pass.
TEST(ShardedDag, WithoutOverlapCollectivesAddUp) {
  Job job{.times = collectives(0.25, 0.5), .overlap = models::Overlap::none};
  EXPECT_DOUBLE_EQ(job.period(), computed + units * (0.25 + 0.5) + blocks * 0.25);
  job.thresholds.reshard = false;
  EXPECT_DOUBLE_EQ(job.period(), computed + units * (0.25 + 0.5));
  job.strategy = "zero1";  // each tensor is a bucket: a table, and weights with their biases
  EXPECT_DOUBLE_EQ(job.period(), computed + (2 * (blocks + 1) + 1) * (0.25 + 0.5));
}

// The first gather and the last reduction are beside nothing. The embedding's forward pass hides the
// gather of the first block, and so on.
TEST(ShardedDag, TheFirstGatherAndTheLastReductionAreExposed) {
  const Job job{.times = collectives(0.25, 0.5)};
  EXPECT_DOUBLE_EQ(job.period(), computed + 0.25 + 0.5);
}

// One communicator: no iteration is shorter than all that it sends.
TEST(ShardedDag, GathersAndReductionsShareALane) {
  const Job job{.times = collectives(10, 20)};
  EXPECT_GE(job.period(), (units + blocks) * 10 + units * 20);
}

TEST(ShardedDag, EachBatchHasItsCollectives) {
  Job job{.times = collectives(0.25, 0.5), .overlap = models::Overlap::none};
  const double one = job.period();
  job.repeated = 3;
  EXPECT_DOUBLE_EQ(job.period(), 4 * one);
}

RC_GTEST_PROP(ShardedDag, OverlapHelpsAndCommunicationHurts, ()) {
  Job job{.times = collectives(test::drawn(0, 40) / 8.0, test::drawn(0, 40) / 8.0)};
  job.times.copy_in = Seconds{test::drawn(0, 4) / 8.0};
  job.times.copy_out = Seconds{test::drawn(0, 4) / 8.0};
  job.strategy = test::drawn(0, 1) == 0 ? "fsdp" : "zero2";
  job.repeated = test::drawn(0, 3);
  const double period = job.period();
  RC_ASSERT(period >= computed * (1 + job.repeated) - 1e-9);
  Job slower = job;
  slower.times.gather += Seconds{1};
  RC_ASSERT(slower.period() >= period - 1e-9);
  Job apart = job;
  apart.overlap = models::Overlap::none;
  RC_ASSERT(apart.period() >= period - 1e-9);
}

// A step of FSDP moves 1.5 times an all-reduce's bytes where ZeRO-1 moves as many (Rajbhandari 2020, 7),
// and as many where parameters stay gathered; each of several batches as much again.
TEST(ShardTraffic, IsThatOfThePaper) {
  const auto moved = [](ShardUse use, int batches) {
    const ShardTraffic traffic = shard_traffic(use, batches);
    return 0.5 * (traffic.gathers + traffic.reductions);  // of an all-reduce
  };
  using models::ShardingKind;
  EXPECT_DOUBLE_EQ(moved({ShardingKind::zero1, 8, true}, 1), 1);
  EXPECT_DOUBLE_EQ(moved({ShardingKind::zero1, 8, true}, 4), 1);
  EXPECT_DOUBLE_EQ(moved({ShardingKind::zero2, 8, true}, 4), 2.5);
  EXPECT_DOUBLE_EQ(moved({ShardingKind::zero3, 8, true}, 1), 1.5);
  EXPECT_DOUBLE_EQ(moved({ShardingKind::zero3, 8, true}, 4), 6);
  EXPECT_DOUBLE_EQ(moved({ShardingKind::zero3, 8, false}, 1), 1);
}

// Eight replicas of a node share its NICs, and all of them are used.
TEST(RankGroups, ReplicasOfANodeShareItsNics) {
  const models::Cluster cluster = models::catalog_cluster("h100-ndr");
  const double all = cluster.nics_per_node * cluster.nic.bandwidth.value.value();
  for (const int shards : {1, 2, 4, 8, 16, 64}) {
    const RankGroup group = replica_group(cluster, shards, 128);
    const int on_a_node = std::max(1, 8 / shards);
    EXPECT_EQ(group.ranks, 128 / shards);
    EXPECT_EQ(group.cluster.ranks_per_node, on_a_node);
    EXPECT_NEAR(group.cluster.nics_per_node * group.cluster.nic.bandwidth.value.value(),
                all * on_a_node / 8, 1e-3 * all)
        << shards;
  }
  EXPECT_EQ(shard_group(cluster, 12, 12).ranks, 12);  // all of them, on nodes that are not full
  EXPECT_EQ(test::error_of([&] { (void)shard_group(cluster, 12, 96); }),
            "--group: groups of 12 ranks on nodes of 8; choose a divisor or a multiple of 8");
}

DeviceMemory memory_of(const char* model, const char* strategy, int ranks, Recompute recompute,
                       models::Precision precision = models::Precision::mixed) {
  const models::NetworkWork network = models::work(models::zoo_network(model));
  const models::Plan plan = models::make_plan(models::strategy(strategy), network.gradients, ranks,
                                              models::WireType::fp16, {.fusion = Bytes{25e6}});
  return device_memory({.network = network,
                        .plan = plan,
                        .precision = precision,
                        .batch_per_rank = 1,
                        .optimizer = {.states = 2},
                        .recompute = recompute});
}

double states(const DeviceMemory& memory) {
  return (memory.parameters + memory.masters + memory.gradients + memory.optimizer).value();
}

// 16 N bytes of states, over the ranks for FSDP; 4 N + 12 N / n with FP16 gradients for ZeRO-1 and 2 N + 14 N / n
// for ZeRO-2 (Rajbhandari 2020, figure 1, K = 12).
TEST(ShardedMemory, OfStatesIsThatOfThePaper) {
  const double n = 8'030'261'248;
  EXPECT_DOUBLE_EQ(states(memory_of("llama-3-8b", "fused-ring", 64, Recompute::none)), 16 * n);
  EXPECT_DOUBLE_EQ(states(memory_of("llama-3-8b", "zero1", 64, Recompute::none)),
                   (4 + 12 / 64.0) * n);
  EXPECT_DOUBLE_EQ(states(memory_of("llama-3-8b", "zero2", 64, Recompute::none)),
                   (2 + 14 / 64.0) * n);
  EXPECT_DOUBLE_EQ(states(memory_of("llama-3-8b", "fsdp", 64, Recompute::none)), 16 * n / 64);
}

// Activations of one sample in GiB, with logits and loss of 6 bytes a token and entry of the vocabulary
// (sharded.md, 3.4). Statistics of norms are left out there and here.
TEST(ShardedMemory, OfActivationsIsThatOfTransformers) {
  constexpr double gibi = 1024.0 * 1024 * 1024;
  const auto activations = [](const char* model, Recompute recompute) {
    const DeviceMemory memory = memory_of(model, "fsdp", 64, recompute);
    return (memory.activations + memory.workspace).value() / gibi;
  };
  EXPECT_NEAR(activations("llama-3-8b", Recompute::none), 34.0 + 5.87, 0.3);
  EXPECT_NEAR(activations("llama-2-7b", Recompute::none), 16.1 + 0.73, 0.2);
  EXPECT_NEAR(activations("llama-3-70b", Recompute::none), 168 + 5.87, 1.5);
  // With dropout, which nothing here has, a token and layer keep 34 h bytes in place of 32 h.
  EXPECT_NEAR(activations("gpt3-175b", Recompute::none), 76.6 * 32 / 34 + 0.58, 0.7);
  // A block's input each, and the larger of the logits and of one block with its gradients.
  EXPECT_NEAR(activations("llama-3-8b", Recompute::full), 2.0 + 5.87, 0.3);
  EXPECT_NEAR(activations("llama-3-70b", Recompute::full), 10.0 + 5.87, 0.5);
}

TEST(ShardedMemory, RecomputationNeverTakesMore) {
  for (const models::ZooEntry& entry : models::zoo()) {
    const std::string name(entry.name);
    const Bytes kept = memory_of(name.c_str(), "fused-ring", 8, Recompute::none).total();
    EXPECT_LE(memory_of(name.c_str(), "fused-ring", 8, Recompute::full).total(), kept) << name;
  }
}

struct Question {
  models::NetworkWork network = models::work(models::zoo_network("llama-3-8b"));
  models::Cluster cluster = models::catalog_cluster("h100-ndr");

  [[nodiscard]] StrategyPrediction ask(const char* strategy, int ranks, int accumulate = 1,
                                       Recompute recompute = Recompute::none) const {
    PredictionOptions options;
    options.batch_per_rank = 1;
    options.accumulate = accumulate;
    options.recompute = recompute;
    return Predictor({options, network, cluster, nullptr, ranks, models::WireType::fp16})
        .predict(models::strategy(strategy));
  }
};

TEST(ShardedPrediction, HasAnIntervalAroundItsTime) {
  const Question question;
  for (const char* strategy : {"zero1", "zero2", "fsdp", "hsdp"}) {
    const StrategyPrediction row = question.ask(strategy, 64);
    EXPECT_LT(row.iteration.low, row.iteration.value) << strategy;
    EXPECT_GT(row.iteration.high, row.iteration.value) << strategy;
    EXPECT_TRUE(row.converged);
  }
}

// The update is that of a shard, and HSDP on one node is FSDP.
TEST(ShardedPrediction, MoreShardsUpdateFaster) {
  const Question question;
  EXPECT_GT(question.ask("fsdp", 8).spent.update, 7 * question.ask("fsdp", 64).spent.update);
  EXPECT_EQ(question.ask("hsdp", 8).iteration.value, question.ask("fsdp", 8).iteration.value);
}

TEST(ShardedPrediction, FourBatchesTakeAboutFourTimes) {
  const Question question;
  const double one = question.ask("fsdp", 64).iteration.value.value();
  const double four = question.ask("fsdp", 64, 4).iteration.value.value();
  EXPECT_GT(four, 3.9 * one);
  EXPECT_LT(four, 4 * one);
}

// Recomputing blocks adds their forward passes, a third of the time of a model without a head.
TEST(ShardedPrediction, RecomputationTakesAThirdMore) {
  const Question question;
  const StrategyPrediction kept = question.ask("fsdp", 64);
  const StrategyPrediction again = question.ask("fsdp", 64, 1, Recompute::full);
  const double more = again.iteration.value / kept.iteration.value;
  EXPECT_GT(more, 1.25);
  EXPECT_LT(more, 4.0 / 3);
  EXPECT_LT(again.utilization->mfu, kept.utilization->mfu);
  EXPECT_GT(again.utilization->hfu, again.utilization->mfu);
}

// 6 N without the embedding, and 6 L q s of attention with half of its square (sharded.md, 5): Llama 3 8B at
// 8,192 tokens has 0.143 of its 6 N in attention, and 0.286 with all of the square.
TEST(Utilization, CountsTheFlopsOfTheModel) {
  const Question question;
  const StrategyPrediction row = question.ask("fsdp", 64);
  const Utilization& use = *row.utilization;
  const double weights = 8'030'261'248 - 525'336'576;
  const double peak = 989e12;
  const double of_weights = 6 * weights * use.tokens_of_rank.value() / peak;
  EXPECT_NEAR(use.mfu / of_weights, 1.143, 0.001);
  EXPECT_NEAR(use.mfu_full_square / of_weights, 1.286, 0.001);
  EXPECT_NEAR(use.tokens.value(), 64 * use.tokens_of_rank.value(), 1);
  EXPECT_NEAR(use.tokens.value(), 8192 * row.throughput.value(), 1);
}

}  // namespace
}  // namespace paceline::simulator
