#include "runtime/replay/replay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/base/error.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "tests/support/rank_threads.h"

namespace paceline::runtime {
namespace {

using testing::on_ranks;

models::Plan plan_of(const char* strategy, int ranks, models::WireType wire,
                     const models::NetworkWork& network) {
  return models::make_plan(models::strategy(strategy), network.gradients, ranks, wire,
                           {.fusion = Bytes{40e3}});
}

std::vector<LayerDuration> durations(const models::NetworkWork& network, Seconds each) {
  return {network.layers.size(), LayerDuration{each, each}};
}

TEST(Replay, AnIterationTakesAtLeastItsComputationAndSumsAreRight) {
  const models::NetworkWork network = models::work(models::zoo_network("cnn-small"));
  for (const models::WireType wire : {models::WireType::fp32, models::WireType::fp16}) {
    for (const char* strategy : {"ring", "fused-ring", "no-overlap"}) {
      const models::Plan plan = plan_of(strategy, 3, wire, network);
      const auto layers = durations(network, Seconds{0.2e-3});
      const double computation = 2 * 0.2e-3 * static_cast<double>(network.layers.size()) + 1e-3;
      on_ranks(3, plan.streams, [&](Transport& transport) {
        const ReplayOutcome outcome = replay(transport, {.network = network,
                                                         .plan = plan,
                                                         .layers = layers,
                                                         .update = Seconds{1e-3},
                                                         .iterations = 3});
        ASSERT_EQ(outcome.iterations.size(), 3U);
        for (const Seconds time : outcome.iterations) EXPECT_GE(time.value(), computation * 0.999);
      });
    }
  }
}

// Each bucket is given to the exchange this much later than its gradients are there, and never before
// the one in front of it.
TEST(Replay, ABucketWaitsForItsCycle) {
  const models::NetworkWork network = models::work(models::zoo_network("cnn-small"));
  models::Plan plan = plan_of("fused-ring", 2, models::WireType::fp32, network);
  ASSERT_GT(plan.buckets.size(), 2U);
  plan.buckets.front().wait = Seconds{0.2};
  plan.buckets.back().wait = Seconds{0.05};
  ASSERT_TRUE(plan.only_waits());
  on_ranks(2, 1, [&](Transport& transport) {
    const ReplayOutcome outcome = replay(transport, {.network = network,
                                                     .plan = plan,
                                                     .layers = durations(network, Seconds{0.1e-3}),
                                                     .update = Seconds{0},
                                                     .iterations = 2});
    for (std::size_t i = 0; i < outcome.iterations.size(); ++i) {
      EXPECT_GE(outcome.iterations[i].value(), 0.2);
      EXPECT_GE(outcome.exposed[i].value(), 0.19);
      EXPECT_LE(outcome.exposed[i], outcome.iterations[i]);
    }
  });
}

TEST(Replay, DoubleBufferingRunsItsLastIterationOut) {
  const models::NetworkWork network = models::work(models::zoo_network("cnn-small"));
  models::Plan plan = plan_of("fused-ring", 2, models::WireType::fp32, network);
  plan.overlap = models::Overlap::double_buffered;
  on_ranks(2, 1, [&](Transport& transport) {
    const ReplayOutcome outcome = replay(transport, {.network = network,
                                                     .plan = plan,
                                                     .layers = durations(network, Seconds{0.1e-3}),
                                                     .update = Seconds{0},
                                                     .warm_up = 2,
                                                     .iterations = 4});
    EXPECT_EQ(outcome.exposed.size(), 4U);
  });
}

TEST(Replay, ATimelineHasEveryTaskOfEachReportedIteration) {
  const models::NetworkWork network = models::work(models::zoo_network("cnn-small"));
  const models::Plan plan = plan_of("fused-ring", 2, models::WireType::fp16, network);
  Recorder recorder(0, 2);
  on_ranks(2, 1, [&](Transport& transport) {
    (void)replay(transport, {.network = network,
                             .plan = plan,
                             .layers = durations(network, Seconds{0.1e-3}),
                             .update = Seconds{0.5e-3},
                             .iterations = 4,
                             .recorder = transport.rank() == 0 ? &recorder : nullptr});
  });
  const models::Timeline timeline = recorder.timeline("replay", 0);
  const auto count = [&](models::TaskKind kind) {
    return static_cast<std::size_t>(
        std::count_if(timeline.events.begin(), timeline.events.end(),
                      [kind](const models::TimelineEvent& e) { return e.kind == kind; }));
  };
  EXPECT_EQ(count(models::TaskKind::forward), 2 * network.layers.size());
  EXPECT_EQ(count(models::TaskKind::backward), 2 * network.layers.size());
  EXPECT_EQ(count(models::TaskKind::cast), 2 * plan.buckets.size());
  EXPECT_EQ(count(models::TaskKind::all_reduce), 2 * plan.buckets.size());
  EXPECT_EQ(count(models::TaskKind::update), 2U);
}

TEST(Replay, RefusesWhatIsNoReplay) {
  const models::NetworkWork network = models::work(models::zoo_network("cnn-small"));
  const models::Plan plan = plan_of("ring", 1, models::WireType::fp32, network);
  on_ranks(1, 1, [&](Transport& transport) {
    const ReplayRequest right{.network = network,
                              .plan = plan,
                              .layers = durations(network, Seconds{0}),
                              .update = Seconds{0}};
    EXPECT_NO_THROW((void)replay(transport, right));
    ReplayRequest short_of_layers = right;
    short_of_layers.layers.pop_back();
    EXPECT_THROW((void)replay(transport, short_of_layers), InputError);
    ReplayRequest without_iterations = right;
    without_iterations.iterations = 0;
    EXPECT_THROW((void)replay(transport, without_iterations), InputError);
  });
}

}  // namespace
}  // namespace paceline::runtime
