// These tests hold what K-FAC adds to an iteration: by hand, and as properties of random networks.
#include "simulator/cost/k_fac_cost.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "models/plan/k_fac.h"
#include "models/plan/strategy.h"
#include "simulator/cost/device_memory.h"
#include "simulator/engine/collective_timer.h"
#include "simulator/iteration/dag.h"
#include "simulator/iteration/plan_timing.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/prediction/prediction.h"
#include "tests/simulator/small_job.h"
#include "tests/support/error_of.h"
#include "tests/support/generators.h"

namespace paceline::simulator {
namespace {

using namespace paceline::literals;
using models::Overlap;
using models::Precision;
using models::WireType;

// 1 TFLOP/s and 1 GB/s, all of which is reached.
models::Device plain_device(double flops, double bytes) {
  models::Device device = models::catalog_cluster("jizhi-p40").device;
  const auto exactly = [](auto value) {
    return Figure<decltype(value)>{value, value, value, Provenance::assumed, "test"};
  };
  device.fp32 = exactly(FlopsPerSecond{flops});
  device.compute_efficiency = exactly(1.0);
  device.memory_bandwidth = exactly(BytesPerSecond{bytes});
  device.memory_efficiency = exactly(1.0);
  return device;
}

models::Plan plan_of(const models::NetworkWork& network, int ranks, WireType wire,
                     int factors_every = 1, Overlap overlap = Overlap::wait_free) {
  models::Plan plan = models::make_plan(models::strategy("k-fac"), network.gradients, ranks, wire,
                                        {.factors_every = factors_every});
  plan.overlap = overlap;
  return plan;
}

// A second for each byte of a reduce-scatter, and two for one of an all-gather; and what was asked for.
struct Rings {
  std::vector<double> reduced;
  std::vector<double> gathered;
  RingTimes times{[this](Bytes bytes) {
                    reduced.push_back(bytes.value());
                    return Seconds{bytes.value()};
                  },
                  [this](Bytes bytes) {
                    gathered.push_back(bytes.value());
                    return Seconds{2 * bytes.value()};
                  }};
};

models::NetworkWork drawn_network() {
  models::NetworkBuilder net("drawn", models::Shape::image(4 * test::drawn(1, 3), 12, 12));
  const int layers = test::drawn(1, 6);
  for (int i = 0; i < layers; ++i) {
    const std::string number = std::to_string(i);
    net.add("conv" + number, models::Convolution{.channels = 4 * test::drawn(1, 6),
                                                 .kernel = models::square(test::drawn(1, 3)),
                                                 .padding = {1, 1},
                                                 .groups = test::drawn(0, 1) == 0 ? 1 : 4,
                                                 .bias = test::drawn(0, 1) == 0});
    if (test::drawn(0, 1) == 0) net.add("norm" + number, models::BatchNorm{});
    net.add("relu" + number, models::Relu{});
  }
  net.add("fc",
          models::FullyConnected{.outputs = test::drawn(1, 30), .bias = test::drawn(0, 1) == 0});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return models::work(net.build());
}

struct Job {
  models::NetworkWork network;
  models::Device device = plain_device(1e9, 1e9);
  int batch = 1;
  int accumulate = 1;
  double waiting = 1;
  Precision precision = Precision::mixed;

  [[nodiscard]] KfacTimes times(const models::Plan& plan, const RingTimes& rings) const {
    return k_fac_times({.network = network,
                        .plan = plan,
                        .device = device,
                        .precision = precision,
                        .batch_per_rank = batch,
                        .accumulate = accumulate,
                        .waiting = waiting},
                       rings, Bound::stated);
  }
};

// One fully connected layer of 3 inputs and a bias to 2 outputs, batch 5. A: 2 x 5 x 16 FLOPs, and 5
// rows of 4 inputs and 16 elements of memory; G: 2 x 5 x 4, and 5 x 2 and 4.
models::NetworkWork one_layer() {
  models::NetworkBuilder net("one", models::Shape::vector(3));
  net.add("fc", models::FullyConnected{2});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return models::work(net.build());
}

TEST(Kfac, OneLayerByHand) {
  Rings rings;
  Job job{one_layer()};
  job.batch = 5;
  // Memory that takes no time: FLOPs alone.
  job.device = plain_device(1, 1e30);
  const models::Plan plan = plan_of(job.network, 2, WireType::fp16);
  KfacTimes times = job.times(plan, rings.times);
  ASSERT_EQ(times.factors.size(), job.network.layers.size());
  EXPECT_DOUBLE_EQ(times.factors[0].forward.value(), 160);
  EXPECT_DOUBLE_EQ(times.factors[0].backward.value(), 40);
  ASSERT_EQ(times.owned.size(), 1U);
  EXPECT_EQ(times.owners, 1);
  EXPECT_DOUBLE_EQ(times.owned[0].invert.value(), 7.0 / 3 * (64 + 8));
  EXPECT_DOUBLE_EQ(times.owned[0].precondition.value(), 2 * 4 * 4 + 2 * 2 * 16);
  EXPECT_DOUBLE_EQ(times.factors_total().value(), 200);
  EXPECT_DOUBLE_EQ(times.owned_total().value(), 7.0 / 3 * 72 + 96);
  // FP16: 10 elements of A; 3 of G and 8 gradients. Rank 1 owns nothing and sends all of it, which is
  // what it sends of twice as much in a ring of two equal parts.
  EXPECT_EQ(times.inputs.bytes, 20_B);
  EXPECT_EQ(times.reduced.bytes, 22_B);
  EXPECT_EQ(times.gathered.bytes, 16_B);
  EXPECT_EQ(times.inputs.most_sent, 20_B);
  EXPECT_EQ(rings.reduced, (std::vector<double>{44, 40}));
  EXPECT_EQ(rings.gathered, std::vector<double>{32});
  EXPECT_EQ(times.reduced.transfer, 44_s);
  EXPECT_EQ(times.gathered.transfer, 64_s);

  // FLOPs that take no time: bytes alone. Activations and gradients are FP16, factors FP32.
  job.device = plain_device(1e30, 1);
  times = job.times(plan, rings.times);
  EXPECT_DOUBLE_EQ(times.factors[0].forward.value(), 2 * 5 * 4 + 4 * 16);
  EXPECT_DOUBLE_EQ(times.factors[0].backward.value(), 2 * 5 * 2 + 4 * 4);
  EXPECT_DOUBLE_EQ(times.owned[0].invert.value(), 5 * 4 * (16 + 4));
  EXPECT_DOUBLE_EQ(times.owned[0].precondition.value(), 4 * (16 + 4) + 3 * 4 * 8);
  EXPECT_DOUBLE_EQ(times.inputs.pack.value(), 10 * (4 + 2));
  EXPECT_DOUBLE_EQ(times.inputs.unpack.value(), 10 * 2 + 16 * 4);
  EXPECT_DOUBLE_EQ(times.reduced.pack.value(), 3 * (4 + 2) + 8 * (2 + 2));
  EXPECT_DOUBLE_EQ(times.reduced.unpack.value(), 3 * 2 + 4 * 4 + 8 * (2 + 2));
  EXPECT_DOUBLE_EQ(times.gathered.pack.value(), 8 * (2 + 2));
  EXPECT_DOUBLE_EQ(times.gathered.unpack.value(), 8 * (2 + 2));

  // Ranks that wait for the slowest, and batches that are accumulated: each with its own factors.
  job.accumulate = 3;
  job.waiting = 1.5;
  const KfacTimes slow = job.times(plan, rings.times);
  EXPECT_DOUBLE_EQ(slow.factors_total() / times.factors_total(), 4.5);
  // All but the last batch's ahead of the last backward pass.
  EXPECT_DOUBLE_EQ(slow.factors[0].backward / times.factors[0].backward, 1.5);
  // Three factors A and the two earlier factors G: 3 x 104 + 2 x 36.
  EXPECT_DOUBLE_EQ(slow.earlier_g[0], 72.0 / 384);
  EXPECT_DOUBLE_EQ(times.earlier_g[0], 0);
  EXPECT_DOUBLE_EQ(slow.owned_total() / times.owned_total(), 1.5);
  EXPECT_EQ(slow.reduced.total(), times.reduced.total());
}

// A convolution reads its input once for each place of the kernel; a batch norm its input and gradient.
TEST(Kfac, AConvolutionIsUnfoldedAndABatchNormHasOneMatrix) {
  models::NetworkBuilder net("toy", models::Shape::image(2, 6, 6));
  net.add("conv", models::Convolution{.channels = 3, .kernel = models::square(3), .bias = false});
  net.add("norm", models::BatchNorm{});
  Rings rings;
  Job job{models::work(net.build())};
  job.batch = 7;
  job.precision = Precision::fp32;
  const models::Plan plan = plan_of(job.network, 1, WireType::fp32);
  job.device = plain_device(1, 1e30);
  KfacTimes times = job.times(plan, rings.times);
  EXPECT_DOUBLE_EQ(times.factors[0].forward.value(), 2.0 * 7 * 16 * 18 * 18);
  EXPECT_DOUBLE_EQ(times.factors[0].backward.value(), 2.0 * 7 * 16 * 3 * 3);
  EXPECT_DOUBLE_EQ(times.factors[1].forward.value(), 0);
  EXPECT_DOUBLE_EQ(times.factors[1].backward.value(), 2.0 * 7 * 6 * 6);
  job.device = plain_device(1e30, 1);
  times = job.times(plan, rings.times);
  EXPECT_DOUBLE_EQ(times.factors[0].forward.value(), 4.0 * (2 * 7 * 16 * 18 + 18 * 18));
  EXPECT_DOUBLE_EQ(times.factors[1].backward.value(), 4.0 * (2 * 7 * 48 + 6 * 6));
}

// FP16 where the wire is FP16: triangles and gradients, w bytes each, whatever the overlap and the
// number of ranks; and the busiest rank sends what it does in a ring of equal parts of what is timed.
RC_GTEST_PROP(Kfac, BytesOnTheWireAreTheClosedForm, ()) {
  const Job job{drawn_network()};
  const int ranks = test::drawn(2, 40);
  const WireType wire = test::drawn(0, 1) == 0 ? WireType::fp32 : WireType::fp16;
  const double w = models::element_size(wire).value();
  double factors = 0;
  for (const models::LayerWork& layer : job.network.layers) {
    const auto triangle = [](std::int64_t n) { return static_cast<double>(n * (n + 1) / 2); };
    if (layer.kind == "batch_norm") factors += triangle(2 * layer.output.channels);
    if (layer.parameters.empty() || layer.kind == "batch_norm") continue;
    const std::vector<std::int64_t>& shape = layer.parameters[0].shape;
    const std::int64_t bias = layer.parameters.size() > 1 ? 1 : 0;
    std::int64_t inputs = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) inputs *= shape[i];
    factors += static_cast<double>(layer.groups) *
               (triangle(inputs + bias) + triangle(shape[0] / layer.groups));
  }
  const auto parameters = static_cast<double>(job.network.parameters());
  for (const Overlap overlap : {Overlap::wait_free, Overlap::none}) {
    Rings rings;
    const models::Plan plan = plan_of(job.network, ranks, wire, 1, overlap);
    const KfacTimes times = job.times(plan, rings.times);
    RC_ASSERT((times.inputs.bytes + times.reduced.bytes).value() == w * (factors + parameters));
    RC_ASSERT(times.gathered.bytes.value() == w * parameters);
    RC_ASSERT((times.inputs.bytes > 0_B) == (overlap == Overlap::wait_free));
    for (const PackedCollective& collective : {times.reduced, times.gathered}) {
      RC_ASSERT(collective.most_sent <= collective.bytes);
      RC_ASSERT(collective.most_sent >= (ranks - 1.0) / ranks * (1 - 1e-12) * collective.bytes);
    }
    const double sent = (ranks - 1.0) / ranks * rings.reduced.front();
    RC_ASSERT(std::abs(sent - times.reduced.most_sent.value()) <= 1e-9 * sent);
  }
}

// Over all ranks, every layer is inverted by its owner and by nobody else; what one rank does is what
// the longest owner does.
RC_GTEST_PROP(Kfac, EveryLayerIsInvertedOnce, ()) {
  const Job job{drawn_network()};
  const int ranks = test::drawn(1, 12);
  Rings rings;
  const models::Plan alone = plan_of(job.network, 1, WireType::fp32);
  const KfacTimes all = job.times(alone, rings.times);
  std::map<int, Seconds> by_layer;
  for (const OwnedLayer& layer : all.owned)
    RC_ASSERT(by_layer.emplace(layer.layer, layer.invert + layer.precondition).second);
  const std::vector<models::FisherBlock> blocks = models::fisher_blocks(job.network);
  RC_ASSERT(by_layer.size() == blocks.size());

  const models::Plan plan = plan_of(job.network, ranks, WireType::fp32);
  const std::vector<int> owners =
      models::owners_of(blocks, ranks, models::ServerPlacement::balanced);
  std::map<int, Seconds> by_rank;
  for (std::size_t i = 0; i < blocks.size(); ++i) by_rank[owners[i]] += by_layer[blocks[i].layer];
  Seconds longest;
  for (const auto& [rank, time] : by_rank) longest = std::max(longest, time);
  const KfacTimes times = job.times(plan, rings.times);
  RC_ASSERT(times.owners == static_cast<int>(by_rank.size()));
  RC_ASSERT(times.owned_total() == longest);
  RC_ASSERT(times.factors_total() == all.factors_total());
}

RC_GTEST_PROP(Kfac, OneRankSendsNothing, ()) {
  const Job job{drawn_network()};
  Rings rings;
  const models::Plan plan = plan_of(job.network, 1, WireType::fp16, test::drawn(1, 9),
                                    test::drawn(0, 1) == 0 ? Overlap::wait_free : Overlap::none);
  const KfacTimes times = job.times(plan, rings.times);
  for (const PackedCollective& collective : {times.inputs, times.reduced, times.gathered}) {
    RC_ASSERT(collective.bytes == 0_B);
    RC_ASSERT(collective.total() == 0_s);
  }
  RC_ASSERT(rings.reduced.empty() && rings.gathered.empty());
  RC_ASSERT(times.owned_total() > 0_s);
  ComputeTimes compute;
  compute.layers.resize(job.network.layers.size());
  std::vector<BucketTimes> buckets(1);
  buckets[0].by_way = times;
  const IterationDag dag(job.network, plan, compute, buckets, {});
  for (const Task& task : dag.tasks()) RC_ASSERT(task.resource == Resource::compute);
  RC_ASSERT(std::abs(steady_state(dag).period / (times.factors_total() + times.owned_total()) - 1) <
            1e-9);
}

// N iterations with one refresh take as long as one iteration that refreshes and N - 1 that do not.
RC_GTEST_PROP(Kfac, FactorsEveryNAreTheMean, ()) {
  const Job job{drawn_network()};
  const int ranks = test::drawn(1, 12);
  const int n = test::drawn(1, 50);
  const Overlap overlap = test::drawn(0, 1) == 0 ? Overlap::wait_free : Overlap::none;
  Rings rings;
  const auto times = [&](int every) {
    return job.times(plan_of(job.network, ranks, WireType::fp16, every, overlap), rings.times);
  };
  const KfacTimes once = times(1);
  const KfacTimes mean = times(n);
  const KfacTimes never = times(models::most_factors_every);
  const auto is_mean = [&](auto time) {
    const double rare = 1.0 / models::most_factors_every;
    const double plain = (time(never) - rare * time(once)) / (1 - rare);
    const double expected = (time(once) + (n - 1) * plain) / n;
    return std::abs(time(mean) - expected) <= 1e-9 * std::max(1e-12, time(once));
  };
  RC_ASSERT(is_mean([](const KfacTimes& t) { return t.factors_total().value(); }));
  RC_ASSERT(is_mean([](const KfacTimes& t) { return t.owned_total().value(); }));
  RC_ASSERT(is_mean([](const KfacTimes& t) { return t.inputs.total().value(); }));
  RC_ASSERT(is_mean([](const KfacTimes& t) { return t.reduced.total().value(); }));
  RC_ASSERT(mean.gathered.total() == once.gathered.total());
  // Only preconditioning is left where factors are hardly ever refreshed, and gradients travel.
  double preconditioned = 0;
  for (const OwnedLayer& layer : once.owned) preconditioned += layer.precondition.value();
  RC_ASSERT(never.owned_total().value() < preconditioned + 1e-5 * once.owned_total().value());
  if (ranks > 1) RC_ASSERT(never.reduced.transfer > 0_s);
}

struct Expected {
  TaskKind kind;
  int index;
  double start;
};

// Two layers, each 1 s forward and 2 s backward with factors of 0.5 and 0.25 s; the update takes 1 s.
//   compute        0 f0 1 A0 1.5 f1 2.5 A1 3 | G1 3.25 b1 5.25 G0 5.5 b0 7.5 ...
//   communication  A: pack 3, sent 3.5 to 7.5, unpacked at 8; G: pack 8, sent 8.25 to 11.25
//   owner          inverts layer 1 from 11.5 on, preconditions it until 13.5; all-gather until 15.5
TEST(Kfac, StagesFollowEachOther) {
  const models::NetworkWork network = test::chain_network({3, 4});
  ComputeTimes compute;
  compute.layers = {{1_s, 2_s}, {1_s, 2_s}};
  compute.update = 1_s;
  KfacTimes times;
  times.factors = {{0.5_s, 0.25_s}, {0.5_s, 0.25_s}};
  times.owned = {{1, 1.5_s, 0.5_s}};
  times.inputs = {10_B, 10_B, 0.5_s, 4_s, 0.5_s};
  times.reduced = {10_B, 10_B, 0.25_s, 3_s, 0.25_s};
  times.gathered = {10_B, 10_B, 0_s, 2_s, 0_s};
  std::vector<BucketTimes> buckets(1);
  buckets[0].by_way = times;
  const models::Plan plan = plan_of(network, 4, WireType::fp32);
  const IterationDag dag(network, plan, compute, buckets, {});
  const SteadyIteration steady = steady_state(dag);
  ASSERT_TRUE(steady.converged);
  EXPECT_EQ(steady.period, 16.5_s);
  const std::vector<Expected> expected = {{TaskKind::forward, 0, 0},
                                          {TaskKind::factor_a, 0, 1},
                                          {TaskKind::forward, 1, 1.5},
                                          {TaskKind::factor_a, 1, 2.5},
                                          {TaskKind::factor_g, 1, 3},
                                          {TaskKind::backward, 1, 3.25},
                                          {TaskKind::factor_g, 0, 5.25},
                                          {TaskKind::backward, 0, 5.5},
                                          {TaskKind::pack, 0, 3},
                                          {TaskKind::reduce_scatter, 0, 3.5},
                                          {TaskKind::unpack, 0, 7.5},
                                          {TaskKind::pack, 0, 8},
                                          {TaskKind::reduce_scatter, 0, 8.25},
                                          {TaskKind::unpack, 0, 11.25},
                                          {TaskKind::invert, 1, 11.5},
                                          {TaskKind::precondition, 1, 13},
                                          {TaskKind::all_gather, 0, 13.5},
                                          {TaskKind::update, -1, 15.5}};
  ASSERT_EQ(dag.tasks().size(), expected.size());
  const Seconds zero = steady.start[0];
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(dag.tasks()[i].kind, expected[i].kind) << i;
    EXPECT_EQ(dag.tasks()[i].index, expected[i].index) << i;
    EXPECT_NEAR((steady.start[i] - zero).value(), expected[i].start, 1e-9) << i;
  }
  const TimeSpent spent = time_spent(dag, steady);
  EXPECT_NEAR(spent.compute.value(), 10.5, 1e-9);
  EXPECT_NEAR(spent.exposed_communication.value(), 6, 1e-9);
  EXPECT_NEAR(spent.communication.value(), 10.5, 1e-9);
  // The interval is sampled from the communication that is exposed, which has only the part of A
  // that does not get through beside the backward pass.
  EXPECT_NEAR(times.communication(4.5_s).value(), 0.5 + 3.5 + 2, 1e-9);
  EXPECT_EQ(times.folded_into(compute).total(), compute.total() + 3.5_s);
}

// The collectives are rings of the catalogue, by the engine that the job asks for: with p equal parts
// (p-1)(alpha + n/p (beta + gamma)), and all of n where a rank owns nothing.
TEST(Kfac, CollectivesAreTimedByTheEngine) {
  CommunicationCost cost;
  cost.nic = {1e-6 * 1_s, SecondsPerByte{1e-9}};
  cost.gamma = SecondsPerByte{5e-10};
  CollectiveTimer timer(cost);
  const RingTimes rings{
      [&](Bytes bytes) { return timer.time(k_fac_collective("reduce-scatter", 8), bytes); },
      [&](Bytes bytes) { return timer.time(k_fac_collective("all-gather", 8), bytes); }};
  const Job job{one_layer()};
  const models::Plan plan = plan_of(job.network, 8, WireType::fp32, 1, Overlap::none);
  const KfacTimes times = job.times(plan, rings);
  EXPECT_NEAR(times.reduced.transfer.value(), 7e-6 + 84 * 1.5e-9, 1e-15);
  EXPECT_NEAR(times.gathered.transfer.value(), 7e-6 + 32 * 1e-9, 1e-15);
}

struct Cluster {
  models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  models::Cluster cluster = models::catalog_cluster("jizhi-p40");

  [[nodiscard]] PredictionRequest request(int ranks) const {
    return {{.batch_per_rank = 32}, network, cluster, nullptr, ranks, WireType::fp16};
  }
};

// Fewer layers for each owner, fewer refreshes, and an interval around it all.
TEST(Kfac, PredictionsAreOrdered) {
  const Cluster job;
  const models::Strategy& k_fac = models::strategy("k-fac");
  const auto predicted = [&](int ranks, int every, std::optional<Overlap> overlap = {}) {
    PredictionRequest request = job.request(ranks);
    request.thresholds.factors_every = every;
    request.overlap = overlap;
    return Predictor(request).predict(k_fac);
  };
  const StrategyPrediction one = predicted(1, 1);
  EXPECT_EQ(one.spent.exposed_communication, 0_s);
  EXPECT_EQ(one.spent.communication, 0_s);
  const StrategyPrediction many = predicted(64, 1);
  ASSERT_TRUE(one.k_fac && many.k_fac);
  EXPECT_LT(many.k_fac->owned_total(), one.k_fac->owned_total());
  EXPECT_EQ(many.k_fac->owners, 64);
  Seconds before = many.iteration.value;
  for (const int every : {2, 10, 100}) {
    const StrategyPrediction rare = predicted(64, every);
    EXPECT_LT(rare.iteration.value, before);
    before = rare.iteration.value;
  }
  // Hardly any factors: an iteration of first order, and what preconditions and sends the gradients.
  PredictionRequest plain = job.request(64);
  plain.thresholds.fusion = Bytes{1e9};
  const Seconds first_order =
      Predictor(plain).predict(models::strategy("no-overlap")).iteration.value;
  EXPECT_GT(before, first_order);
  EXPECT_LT(before, 1.2 * first_order);
  EXPECT_LT(many.iteration.value, predicted(64, 1, Overlap::none).iteration.value);
  for (const StrategyPrediction& row : {one, many}) {
    EXPECT_LT(row.iteration.low, row.iteration.value);
    EXPECT_GT(row.iteration.high, row.iteration.value);
  }
  Seconds path;
  for (const PathShare& share : many.critical_path) path += share.time;
  EXPECT_NEAR(path / many.iteration.value, 1, 1e-9);
}

TEST(Kfac, WhatItHasNotIsRefused) {
  const Cluster job;
  const models::Strategy& k_fac = models::strategy("k-fac");
  PredictionRequest request = job.request(16);
  request.overlap = Overlap::priority;
  EXPECT_EQ(test::error_of([&] { return Predictor(request).predict(k_fac); }),
            "--overlap: k-fac has no overlap priority; choose wait-free or none");
  request.overlap.reset();
  request.stragglers = MonteCarloRequest{};
  EXPECT_EQ(
      test::error_of([&] { return Predictor(request).predict(k_fac); }),
      "--strategy: no stragglers are simulated with k-fac; leave out --spread, --slow-rank and "
      "--backup, or choose another strategy");
}

// The factors of cnn-small (tests/models/k_fac_test.cc), and their inverses on the owner of fc1, whose
// A is by far the largest. conv2 is unfolded to 196 rows of 401, conv1 to 784 of 26.
TEST(Kfac, MemoryByHand) {
  const models::NetworkWork network = models::work(models::zoo_network("cnn-small"));
  const auto memory = [&](Overlap overlap, int ranks) {
    const models::Plan plan = plan_of(network, ranks, WireType::fp16, 1, overlap);
    return device_memory({network, plan, Precision::fp32, 32});
  };
  const models::Plan first_order =
      models::make_plan(models::strategy("ring"), network.gradients, 4, WireType::fp16, {});
  const DeviceMemory plain = device_memory({network, first_order, Precision::fp32, 32});
  EXPECT_EQ(plain.factors, 0_B);
  const double squares =
      26 * 26 + 16 * 16 + 401 * 401 + 32 * 32 + 1569 * 1569 + 128 * 128 + 129 * 129 + 10 * 10;
  const double a = (26 * 27 + 401 * 402 + 1569 * 1570 + 129 * 130) / 2.0;
  const double g = (16 * 17 + 32 * 33 + 128 * 129 + 10 * 11) / 2.0;
  const double gradients = 416 + 12832 + 200832 + 1290;
  const DeviceMemory beside = memory(Overlap::wait_free, 4);
  EXPECT_EQ(beside.factors.value(), 4 * (squares + 1569 * 1569 + 128 * 128));
  EXPECT_EQ((beside.workspace - plain.workspace).value(), 32 * 196 * 401 * 4);
  EXPECT_EQ(beside.buffers.value(), 2 * 2 * std::max(a, g + gradients));
  EXPECT_EQ(memory(Overlap::none, 4).buffers.value(), 2 * 2 * (a + g + gradients));
  EXPECT_EQ(memory(Overlap::none, 1).buffers, 0_B);
  EXPECT_EQ(memory(Overlap::none, 1).factors.value(), 4 * 2 * squares);
  EXPECT_EQ(beside.total(), plain.total() - plain.buffers - plain.workspace + beside.buffers +
                                beside.workspace + beside.factors);
}

}  // namespace
}  // namespace paceline::simulator
