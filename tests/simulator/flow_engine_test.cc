#include "simulator/engine/flow_engine.h"

#include <gtest/gtest.h>

#include <vector>

#include "models/collective/algorithms.h"
#include "models/collective/combinators.h"
#include "simulator/engine/prepare.h"
#include "simulator/engine/step_engine.h"

namespace paceline::simulator {
namespace {

// Two nodes of two ranks: ports at 1 s a byte, one NIC each at 2 s a byte.
CommunicationCost two_nodes() {
  return {.ranks_per_node = 2,
          .intra = {Seconds{0}, SecondsPerByte{1}},
          .nic = {Seconds{0}, SecondsPerByte{2}}};
}

// One message, by the end of a chain to its first.
models::Schedule message(int ranks, int from, int to) {
  return models::within(ranks,
                        models::Groups{.members = {{.first = to, .count = 1, .stride = 1},
                                                   {.first = from, .count = 1, .stride = 1}}},
                        models::Schedule(models::ChainReduce{2}));
}

TEST(FlowEngine, AMessageAloneTakesAlphaAndItsBytesOverTheNarrowestLink) {
  CommunicationCost cost = two_nodes();
  cost.nic.alpha = Seconds{5};
  cost.gamma = SecondsPerByte{0.5};
  const std::vector<models::Schedule> schedules = {message(4, 0, 2)};
  FlowEngine engine(schedules, cost);
  EXPECT_DOUBLE_EQ(engine.completion(0, Bytes{10}).last().value(), 5 + 20 + 5);
}

// Two messages over one NIC from ranks that are ready at 0 and at 10. The NIC gives a byte every
// 2 s: the first has 5 bytes through when the second starts; then each gets half. The first is done
// 2 * 2 * 5 s later, at 30, with 5 bytes of the second through, which then takes 2 * 5 s.
TEST(FlowEngine, TwoMessagesShareANic) {
  const std::vector<models::Schedule> schedules = {models::within(
      4,
      models::Groups{.members = {{.first = 0, .count = 2, .stride = 2}}, .count = 2, .stride = 1},
      models::Schedule(models::ChainReduce{2}))};
  FlowEngine engine(schedules, two_nodes(), Collapse::none);
  const std::vector<Seconds> ready = {Seconds{0}, Seconds{10}, Seconds{0}, Seconds{10}};
  const Completion completion = engine.completion(0, Bytes{10}, ready);
  EXPECT_DOUBLE_EQ(completion.of(0).value(), 30);
  EXPECT_DOUBLE_EQ(completion.of(2).value(), 30);
  EXPECT_DOUBLE_EQ(completion.of(1).value(), 40);
  EXPECT_DOUBLE_EQ(completion.of(3).value(), 40);
}

// The same as two collectives in flight, and a third that starts when the first is done.
TEST(FlowEngine, CollectivesInFlightShareANic) {
  const std::vector<models::Schedule> schedules = {message(4, 0, 2), message(4, 1, 3)};
  FlowEngine engine(schedules, two_nodes());
  std::vector<std::pair<int, double>> done;
  engine.run(
      [](Launcher& launcher) {
        launcher.launch(7, {.schedule = 1, .bytes = Bytes{10}, .at = Seconds{10}});
        launcher.launch(3, {.schedule = 0, .bytes = Bytes{10}, .at = Seconds{0}});
      },
      [&](int id, Seconds at, Launcher& launcher) {
        done.emplace_back(id, at.value());
        if (id == 3) launcher.launch(4, {.schedule = 0, .bytes = Bytes{10}, .at = at});
      });
  // At 30, 5 bytes of the second are left, and the third starts: 20 s together, then 5 bytes alone.
  EXPECT_EQ(done, (std::vector<std::pair<int, double>>{{3, 30}, {7, 50}, {4, 60}}));
}

TEST(FlowEngine, EmptyBucketsTakeTheirLatencies) {
  CommunicationCost cost = two_nodes();
  cost.intra.alpha = Seconds{1};
  cost.nic.alpha = Seconds{1};
  const std::vector<models::Schedule> schedules = {models::ring_all_reduce(8)};
  EXPECT_DOUBLE_EQ(FlowEngine(schedules, cost).completion(0, Bytes{0}).last().value(), 14);
  cost.intra.alpha = cost.nic.alpha = Seconds{0};
  EXPECT_DOUBLE_EQ(FlowEngine(schedules, cost).completion(0, Bytes{0}).last().value(), 0);
}

TEST(FlowEngine, OneRankIsDoneWhenItIsReady) {
  const std::vector<models::Schedule> schedules = {models::ring_all_reduce(1)};
  FlowEngine engine(schedules, two_nodes());
  EXPECT_EQ(engine.completion(0, Bytes{10}).last(), Seconds{0});
  EXPECT_EQ(engine.completion(0, Bytes{10}, std::vector{Seconds{3}}).last(), Seconds{3});
}

TEST(FlowEngine, LongRunsAreCutShort) {
  const std::vector<models::Schedule> schedules = {models::ring_all_reduce(1024)};
  CommunicationCost cost = two_nodes();
  cost.ranks_per_node = 8;
  FlowEngine engine(schedules, cost);
  const Seconds time = engine.completion(0, Bytes{1e6}).last();
  EXPECT_EQ(engine.positions(), 8);
  EXPECT_LT(engine.flows(), 1000);
  EXPECT_NEAR(time.value(), StepEngine(schedules.front(), cost).time(Bytes{1e6}).value(),
              1e-9 * time.value());
}

TEST(SharesLinks, OnlyWhereMessagesOverlap) {
  CommunicationCost cost = two_nodes();
  cost.ranks_per_node = 4;
  // One message leaves each node, in each step, from the same rank.
  EXPECT_FALSE(shares_links(models::ring_all_reduce(16), cost));
  // Four do.
  EXPECT_TRUE(shares_links(models::halving_doubling_all_reduce(16), cost));
  EXPECT_FALSE(shares_links(models::halving_doubling_all_reduce(4), cost));
  cost.nic_use = models::NicUse::affinity;
  cost.nics_per_node = 4;
  EXPECT_FALSE(shares_links(models::halving_doubling_all_reduce(16), cost));
  // The servers' ports.
  EXPECT_TRUE(shares_links(models::parameter_server(4, 1, 0), cost));
}

}  // namespace
}  // namespace paceline::simulator
