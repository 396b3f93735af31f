#include "simulator/engine/step_engine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "models/base/error.h"
#include "models/collective/algorithms.h"
#include "models/collective/enumerate.h"
#include "simulator/cost/communication_cost.h"
#include "tests/support/error_of.h"
#include "tests/support/generators.h"
#include "tests/support/schedules.h"

namespace paceline::simulator {
namespace {

using models::NicUse;

// 1 s latency inside, 10 s between nodes; 1 byte/s ports, 0.5 byte/s NIC; 0.25 s to reduce a byte.
CommunicationCost by_hand(int ranks_per_node) {
  return {.ranks_per_node = ranks_per_node,
          .intra = {Seconds{1}, SecondsPerByte{1}},
          .nic = {Seconds{10}, SecondsPerByte{2}},
          .nics_per_node = 1,
          .nic_use = NicUse::striped,
          .gamma = SecondsPerByte{0.25}};
}

// Two nodes of two ranks, 8 bytes. Halving: step 1 inside the node, 4 bytes: 1 + 4, reduce 1 = 6.
// Step 2 between nodes, 2 bytes from each of the two ranks: the NIC carries 4 bytes in 8 s: 10 + 8,
// reduce 0.5 = 18.5. Doubling: 10 + 8, then 1 + 4. Sum 6 + 18.5 + 18 + 5.
TEST(StepEngine, SharesTheNicOfANode) {
  const StepEngine engine(models::halving_doubling_all_reduce(4), by_hand(2));
  EXPECT_DOUBLE_EQ(engine.time(Bytes{8}).value(), 47.5);
}

// Two NICs double the bandwidth when striped; with affinity each rank has its own: 2 bytes in 4 s.
TEST(StepEngine, UsesSeveralNics) {
  for (const NicUse use : {NicUse::striped, NicUse::affinity}) {
    CommunicationCost cost = by_hand(2);
    cost.nics_per_node = 2;
    cost.nic_use = use;
    EXPECT_DOUBLE_EQ(
        StepEngine(models::halving_doubling_all_reduce(4), cost).time(Bytes{8}).value(), 39.5);
  }
}

// A ring over two nodes of two: one message leaves each node in each step; with affinity it has one
// of two NICs, striped it has both. 3 + 3 steps of 2 bytes: 10 + 4 (+ 0.5) against 10 + 2 (+ 0.5).
TEST(StepEngine, ARingWithAffinityHasOneNic) {
  CommunicationCost cost = by_hand(2);
  cost.nics_per_node = 2;
  EXPECT_DOUBLE_EQ(StepEngine(models::ring_all_reduce(4), cost).time(Bytes{8}).value(),
                   3 * 12.5 + 3 * 12);
  cost.nic_use = NicUse::affinity;
  EXPECT_DOUBLE_EQ(StepEngine(models::ring_all_reduce(4), cost).time(Bytes{8}).value(),
                   3 * 14.5 + 3 * 14);
}

TEST(StepEngine, OneRankTakesNoTime) {
  for (const auto& algorithm : models::all_reduce_catalogue()) {
    EXPECT_EQ(StepEngine(algorithm.build({.ranks = 1, .group_size = 0}), by_hand(1))
                  .time(Bytes{1e9})
                  .value(),
              0);
  }
}

TEST(StepEngine, NoBytesTakeTheLatencies) {
  EXPECT_DOUBLE_EQ(StepEngine(models::ring_all_reduce(8), by_hand(1)).time(Bytes{0}).value(),
                   14 * 10);
}

// Rank 3 is late by 100 s; in a ring everybody is, sooner or later.
TEST(StepEngine, WaitsForALateRank) {
  const StepEngine engine(models::ring_all_reduce(4), by_hand(1), Collapse::none);
  const std::vector<Seconds> equal(4, Seconds{0});
  std::vector<Seconds> late = equal;
  late[3] = Seconds{100};
  const Seconds on_time = engine.completion(Bytes{8}, equal).last();
  EXPECT_EQ(on_time, engine.time(Bytes{8}));
  EXPECT_DOUBLE_EQ(engine.completion(Bytes{8}, late).last().value(), on_time.value() + 100);
}

TEST(StepEngine, RefusesWhatWouldFillTheMemory) {
  try {
    const StepEngine engine(models::halving_doubling_all_reduce(1'000'003), by_hand(8));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "1000003 ranks have too little in common to be timed as a few: they have more than "
        "8 million messages; choose fewer ranks, or a multiple of the 8 ranks of a node or "
        "switch");
  }
}

// What a message tells to choose must help.
TEST(StepEngine, TellsRanksThatFillAllNodesToChooseNoOtherMultiple) {
  EXPECT_EQ(
      test::error_of(
          [] { return StepEngine(models::double_binary_tree_all_reduce(65'536, 64), by_hand(8)); }),
      "65536 ranks have too little in common to be timed as a few: they have more than 8 million "
      "messages; choose fewer segments (--segments), or fewer ranks");
  (void)StepEngine(models::double_binary_tree_all_reduce(65'536, 4), by_hand(8));
}

TEST(StepEngine, GrowsWithEveryParameter) {
  for (const auto& [name, schedule] : test::all_reduces(24)) {
    const auto time = [s = &schedule](const CommunicationCost& cost, double bytes) {
      return StepEngine(*s, cost).time(Bytes{bytes});
    };
    const CommunicationCost base = by_hand(4);
    CommunicationCost slower = base;
    slower.nic.alpha += Seconds{1};
    EXPECT_LE(time(base, 100), time(slower, 100)) << name;
    slower = base;
    slower.nic.beta += SecondsPerByte{1};
    EXPECT_LE(time(base, 100), time(slower, 100)) << name;
    slower = base;
    slower.gamma += SecondsPerByte{1};
    EXPECT_LE(time(base, 100), time(slower, 100)) << name;
    EXPECT_LE(time(base, 100), time(base, 101)) << name;
  }
}

// Two nodes of two ranks, 8 bytes, ports of 1 byte/s, NICs of 0.5 byte/s. Rank 0 and 1 each hold
// parts for all others: 2 bytes to each. A port carries 6 bytes in 6 s, a NIC the 8 bytes of four
// messages in 16 s. Inside: 1 + 6, between nodes: 10 + 16. Each reduces 3 x 2 bytes: 1.5 s. Then
// the same without reductions.
TEST(StepEngine, SharesPortsAndNicsInADirectExchange) {
  const models::Schedule direct = models::sequence(
      {models::Schedule(models::ServerPush{4, 4}), models::Schedule(models::ServerPull{4, 4})});
  EXPECT_DOUBLE_EQ(StepEngine(direct, by_hand(2)).time(Bytes{8}).value(), 27.5 + 26);
  // In one node only the ports are shared: 1 + 6 (+ 1.5), 1 + 6.
  EXPECT_DOUBLE_EQ(StepEngine(direct, by_hand(4)).time(Bytes{8}).value(), 8.5 + 7);
}

// Three nodes of two, 6 bytes. In the first step rank 2 sends to 0 and rank 4 to 1: each sender has
// its NIC alone, but node 0's receives 12 bytes in 24 s: 10 + 24, 1.5 to reduce. Then 1 to 0: 8.5.
TEST(StepEngine, AnIncastIsAsSlowAsTheReceiversNic) {
  const models::Schedule schedule =
      models::within(6, test::in_order({0, 2, 1, 4}), models::Schedule(models::BinomialReduce{4}));
  EXPECT_DOUBLE_EQ(StepEngine(schedule, by_hand(2)).time(Bytes{6}).value(), 35.5 + 8.5);
}

// The mirror image: node 0's NIC sends both messages.
TEST(StepEngine, AnOutcastIsAsSlowAsTheSendersNic) {
  const models::Schedule schedule = models::within(6, test::in_order({0, 1, 2, 4}),
                                                   models::Schedule(models::BinomialBroadcast{4}));
  // 0 to 2 alone: 10 + 12; then 0 to 1 inside the node, 1 + 6, and 2 to 4 between nodes, 10 + 12.
  EXPECT_DOUBLE_EQ(StepEngine(schedule, by_hand(2)).time(Bytes{6}).value(), 22 + 22);
  const models::Schedule crossed = models::within(6, test::in_order({0, 2, 1, 4}),
                                                  models::Schedule(models::BinomialBroadcast{4}));
  // 0 to 1: 7; then 0 to 2 and 1 to 4 share node 0's NIC: 10 + 24.
  EXPECT_DOUBLE_EQ(StepEngine(crossed, by_hand(2)).time(Bytes{6}).value(), 7 + 34);
}

// g = 4, 2 NICs by affinity: slots 0, 1 use NIC 0 and slots 2, 3 NIC 1. In halving over two nodes
// all four exchange 1 of 8 bytes with the other node: 2 bytes a NIC in 4 s.
TEST(StepEngine, AffinityMapsSlotsToNics) {
  CommunicationCost cost = by_hand(4);
  cost.nics_per_node = 2;
  cost.nic_use = NicUse::affinity;
  // 4 bytes: 1 + 4 + 1; 2 bytes: 1 + 2 + 0.5; 1 byte between nodes: 10 + 4 + 0.25; and back.
  const models::Schedule schedule = models::halving_doubling_all_reduce(8);
  EXPECT_DOUBLE_EQ(StepEngine(schedule, cost).time(Bytes{8}).value(), 6 + 3.5 + 14.25 + 14 + 3 + 5);
  // Three NICs for four slots: slots 0 and 1 share NIC 0, slots 2 and 3 have their own: the worst
  // is as before, and the others wait for it at their next step.
  cost.nics_per_node = 3;
  EXPECT_DOUBLE_EQ(StepEngine(schedule, cost).time(Bytes{8}).value(), 6 + 3.5 + 14.25 + 14 + 3 + 5);
  cost.nics_per_node = 4;
  EXPECT_DOUBLE_EQ(StepEngine(schedule, cost).time(Bytes{8}).value(), 6 + 3.5 + 12.25 + 12 + 3 + 5);
}

// A chain of three: rank 2's message travels while rank 0 waits; rank 0 is done at once with the
// first step, and rank 2 with the second.
TEST(StepEngine, ARankWithoutMessagesIsDoneAtOnce) {
  const StepEngine engine(models::pipelined(1, models::Schedule(models::ChainReduce{3})),
                          by_hand(3), Collapse::none);
  const Completion completion = engine.completion(Bytes{4});
  EXPECT_DOUBLE_EQ(completion.of(2).value(), 1 + 4);
  EXPECT_DOUBLE_EQ(completion.of(1).value(), (1 + 4 + 1) + (1 + 4));
  EXPECT_DOUBLE_EQ(completion.of(0).value(), (1 + 4 + 1) + (1 + 4 + 1));
  // Rank 0 is ready late: the second step starts with it. Rank 2 is not held up.
  const std::vector<Seconds> ready = {Seconds{100}, Seconds{0}, Seconds{0}};
  const Completion late = engine.completion(Bytes{4}, ready);
  EXPECT_DOUBLE_EQ(late.of(2).value(), 5);
  EXPECT_DOUBLE_EQ(late.of(1).value(), 105);
  EXPECT_DOUBLE_EQ(late.of(0).value(), 106);
}

TEST(StepEngine, RefusesADirectExchangeThatWouldFillTheMemory) {
  EXPECT_NE(test::error_of([] {
              return StepEngine(models::Schedule(models::ServerPush{100'003, 50'000}), by_hand(8));
            }),
            "no error");
}

RC_GTEST_PROP(StepEngine, IsMonotoneInEveryParameter, ()) {
  const models::Schedule schedule = *test::all_reduce_schedules(24);
  const CommunicationCost base = *test::communication_costs(24);
  const double bytes = test::drawn_up_to(1e8);
  const double factor = 1 + test::drawn_up_to(3);
  const auto time = [&](const CommunicationCost& cost, double size) {
    return StepEngine(schedule, cost).time(Bytes{size}).value();
  };
  const double before = time(base, bytes);
  const auto not_below = [before](double after) { return after >= before * (1 - 1e-12); };
  RC_ASSERT(not_below(time(base, bytes * factor)));
  const auto slower = [&](auto change) {
    CommunicationCost cost = base;
    change(cost);
    return time(cost, bytes);
  };
  RC_ASSERT(not_below(slower([&](auto& c) { c.nic.alpha *= factor; })));
  RC_ASSERT(not_below(slower([&](auto& c) { c.nic.beta *= factor; })));
  RC_ASSERT(not_below(slower([&](auto& c) { c.intra.alpha *= factor; })));
  RC_ASSERT(not_below(slower([&](auto& c) { c.intra.beta *= factor; })));
  RC_ASSERT(not_below(slower([&](auto& c) { c.gamma *= factor; })));
  RC_ASSERT(not_below(slower([&](auto& c) {
    if (c.nic_use == NicUse::striped && c.nics_per_node > 1) --c.nics_per_node;
  })));
}

// Where a rank receives at most f messages in a step, it has contributions of (f+1)^s ranks after s
// steps, and it must have p. A rank's port carries at least (p-1)/p of the bucket twice, and the
// NICs of one of m nodes (m-1)/m of it twice. Somebody reduces at least (p-1)/p of it.
RC_GTEST_PROP(StepEngine, IsNeverBelowTheBoundsOfAnyAllReduce, ()) {
  const models::Schedule schedule = *test::all_reduce_schedules(24);
  const CommunicationCost cost = *test::flat_costs();
  const double bytes = test::drawn_up_to(1e8);
  const double p = schedule.ranks();
  const double time = StepEngine(schedule, cost).time(Bytes{bytes}).value() * (1 + 1e-12);
  const double alpha = std::min(cost.intra.alpha, cost.nic.alpha).value();
  int fan_in = 1;
  for (int step = 0; step < schedule.steps(); ++step) {
    std::vector<int> received(static_cast<std::size_t>(schedule.ranks()));
    models::for_each_transfer(
        schedule, step, models::Span<double>{0.0, 1.0}, [&](const models::Transfer<double>& t) {
          fan_in = std::max(fan_in, ++received[static_cast<std::size_t>(t.to)]);
        });
  }
  int steps = 0;
  for (int reached = 1; reached < schedule.ranks(); reached *= fan_in + 1) ++steps;
  RC_ASSERT(time >= alpha * steps);
  RC_ASSERT(time >= 2 * (p - 1) / p * bytes * cost.intra.beta.value());
  RC_ASSERT(time >= (p - 1) / p * bytes * cost.gamma.value());
  const int nodes = (schedule.ranks() + cost.ranks_per_node - 1) / cost.ranks_per_node;
  const double nics = 2.0 * (nodes - 1) / nodes * bytes * cost.nic.beta.value();
  RC_ASSERT(time >= nics / cost.nics_per_node);
}

// Nodes in another order, and with striped NICs slots too, are the same cluster.
RC_GTEST_PROP(StepEngine, RelabellingRanksChangesNothing, ()) {
  CommunicationCost cost = *test::flat_costs();
  cost.nic_use = NicUse::striped;
  const int g = cost.ranks_per_node;
  const int nodes = test::drawn(1, 24 / g);
  const models::Schedule schedule = test::drawn_all_reduce(nodes * g, 1);
  std::vector<int> order;
  for (const int node : test::drawn_permutation(nodes)) {
    for (const int slot : test::drawn_permutation(g)) order.push_back(node * g + slot);
  }
  const models::Schedule relabelled =
      models::within(schedule.ranks(), test::in_order(order), schedule);
  const Bytes bytes{test::drawn_up_to(1e8)};
  const Completion before = StepEngine(schedule, cost).completion(bytes);
  const Completion after = StepEngine(relabelled, cost).completion(bytes);
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    const double expected = before.of(rank).value();
    const double found = after.of(order[static_cast<std::size_t>(rank)]).value();
    RC_ASSERT(std::fabs(found - expected) <= 1e-11 * expected);
  }
}

// Times are relative to the clock, and have no unit of their own.
RC_GTEST_PROP(StepEngine, ShiftsAndScalesWithTheClock, ()) {
  const models::Schedule schedule = *test::all_reduce_schedules(16);
  const CommunicationCost cost = *test::communication_costs(16);
  const Bytes bytes{test::drawn_up_to(1e8)};
  const StepEngine engine(schedule, cost, Collapse::none);
  std::vector<Seconds> ready;
  std::vector<Seconds> later;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    ready.emplace_back(test::drawn_up_to(1e-3));
    later.push_back(ready.back() + Seconds{10});
  }
  const Completion first = engine.completion(bytes, ready);
  const Completion second = engine.completion(bytes, later);
  CommunicationCost slow = cost;
  for (LinkCost* link : {&slow.intra, &slow.nic}) {
    link->alpha *= 4;
    link->beta *= 4;
  }
  slow.fabric.hop_latency *= 4;
  slow.gamma *= 4;
  if (slow.host) {
    for (SecondsPerByte* beta : {&slow.host->crossing, &slow.host->memory, &slow.host->uplink})
      *beta *= 4;
  }
  const Completion scaled = StepEngine(schedule, slow, Collapse::none).completion(bytes);
  const Completion unscaled = engine.completion(bytes);
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    RC_ASSERT(std::fabs(second.of(rank).value() - first.of(rank).value() - 10) < 1e-11);
    RC_ASSERT(first.of(rank) >= ready[static_cast<std::size_t>(rank)]);
    RC_ASSERT(std::fabs(scaled.of(rank).value() - 4 * unscaled.of(rank).value()) <=
              1e-12 * scaled.of(rank).value());
  }
}

// The engine of what some ranks send and receive.
StepEngine engine_of(const std::vector<int>& ranks, const models::Schedule& schedule,
                     const CommunicationCost& cost) {
  const Routes routes(cost, schedule.ranks());
  return {std::make_shared<StepProgram>(make_step_program_of(ranks, schedule, routes)), routes,
          cost.gamma.value()};
}

// What few ranks send and receive takes at most as long as the whole, and what all of them do as long.
RC_GTEST_PROP(StepEngine, APartIsNeverLaterThanTheWhole, ()) {
  models::Schedule schedule = *test::all_reduce_schedules(24);
  if (test::drawn(0, 1) == 1)
    schedule = models::double_binary_tree_all_reduce(test::drawn(2, 24), test::drawn(1, 40));
  const CommunicationCost cost = *test::communication_costs(schedule.ranks());
  const StepEngine whole(schedule, cost, Collapse::none);
  std::vector<int> all;
  std::vector<int> some;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    all.push_back(rank);
    if (test::drawn(0, 2) == 0) some.push_back(rank);
  }
  const StepEngine part = engine_of(some, schedule, cost);
  const StepEngine again = engine_of(all, schedule, cost);
  for (const Bytes bytes : {Bytes{8}, Bytes{test::drawn_up_to(1e8)}}) {
    const double expected = whole.time(bytes).value();
    RC_ASSERT(part.time(bytes).value() <= expected * (1 + 1e-11));
    RC_ASSERT(std::fabs(again.time(bytes).value() - expected) <= 1e-11 * expected);
  }
}

}  // namespace
}  // namespace paceline::simulator
