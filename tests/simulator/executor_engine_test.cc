#include "simulator/engine/executor_engine.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "models/collective/catalogue.h"
#include "models/collective/combinators.h"
#include "models/collective/enumerate.h"
#include "simulator/engine/step_engine.h"
#include "tests/support/generators.h"

namespace paceline::simulator {
namespace {

constexpr double beta = 1e-8;

// A rank on each node.
CommunicationCost cost(double alpha_s, std::int64_t message, double gap_s = 0) {
  CommunicationCost c;
  c.nic = {Seconds{alpha_s}, SecondsPerByte{beta}};
  c.intra = c.nic;
  c.transport = TransportCost{.message_sizes = {message, message}, .message_gap = Seconds{gap_s}};
  return c;
}

models::Schedule schedule(const std::string& name, int ranks, int group = 1) {
  const models::CollectiveAlgorithm& algorithm = models::all_reduce_algorithm(name);
  return algorithm.build(models::taken_options(algorithm, {.ranks = ranks, .group_size = group}));
}

double time(const models::Schedule& s, const CommunicationCost& c, double bytes) {
  return ExecutorEngine({&s, 1}, c).completion(0, Bytes{bytes}).last().value();
}

// Bytes that the busiest rank sends.
double most_sent(const models::Schedule& s, double bytes) {
  std::vector<double> sent(static_cast<std::size_t>(s.ranks()));
  for (int step = 0; step < s.steps(); ++step) {
    models::for_each_transfer(s, step, models::Span<double>{0.0, 1.0},
                              [&](const models::Transfer<double>& t) {
                                sent[static_cast<std::size_t>(t.from)] += t.span.size * bytes;
                              });
  }
  return *std::max_element(sent.begin(), sent.end());
}

constexpr std::int64_t uncut = std::int64_t{1} << 40;

RC_GTEST_PROP(ExecutorEngine, ARingOfUncutMessagesTakesItsClosedForm, ()) {
  const int ranks = *rc::gen::inRange(2, 17);
  const double bytes = ranks * *rc::gen::inRange(1, 1'000'000);
  const double alpha = *rc::gen::inRange(0, 1000) * 1e-6;
  const double expected = 2.0 * (ranks - 1) * (alpha + bytes / ranks * beta);
  RC_ASSERT(std::abs(time(schedule("ring", ranks), cost(alpha, uncut), bytes) - expected) <
            1e-9 * expected + 1e-12);
}

RC_GTEST_PROP(ExecutorEngine, EqualsTheStepEngineWhereMessagesAreUncutAndStepsAreAlike, ()) {
  const int ranks = 1 << *rc::gen::inRange(1, 5);
  const double bytes = ranks * *rc::gen::inRange(1, 100'000);
  const CommunicationCost c = cost(1e-4, uncut);
  for (const char* name : {"halving-doubling", "recursive-doubling"}) {
    const models::Schedule s = schedule(name, ranks);
    const double expected = StepEngine(s, c).time(Bytes{bytes}).value();
    RC_ASSERT(std::abs(time(s, c, bytes) - expected) < 1e-9 * expected);
  }
}

RC_GTEST_PROP(ExecutorEngine, NoLinkCarriesMoreThanItCan, ()) {
  const int ranks = *rc::gen::inRange(2, 13);
  const double bytes = *rc::gen::inRange(1, 3'000'000);
  const auto message = std::int64_t{*rc::gen::inRange(1000, 400'000)};
  const auto name = *rc::gen::elementOf(
      std::vector<std::string>{"ring", "halving-doubling", "binary-blocks", "direct-exchange",
                               "double-binary-tree", "parameter-server", "bidirectional-ring"});
  const models::Schedule s = schedule(name, ranks);
  const double floor = most_sent(s, bytes) * beta;
  const double found = time(s, cost(1e-5, message), bytes);
  // Cuts are of whole bytes.
  RC_ASSERT(found >= floor - 2.0 * s.steps() * beta);
}

// A ring over 8 ranks in 14 steps, of a bucket of two elements: each step has a message for a rank
// or two, and none for the others.
TEST(ExecutorEngine, PartsWithoutElementsAreNotSent) {
  const models::Schedule ring = schedule("ring", 8);
  ExecutorEngine engine({&ring, 1}, cost(1e-3, uncut), 4);
  (void)engine.completion(0, Bytes{8});
  EXPECT_EQ(engine.messages(), 2 * 14);
  ExecutorEngine of_bytes({&ring, 1}, cost(1e-3, uncut));
  (void)of_bytes.completion(0, Bytes{8});
  EXPECT_EQ(of_bytes.messages(), 8 * 14);
}

// What passes a port faster than its NIC waits there for its turn, and holds no link beyond it.
RC_GTEST_PROP(ExecutorEngine, AFastPortBeforeANicChangesNothing, ()) {
  const int ranks = *rc::gen::inRange(2, 13);
  const double bytes = *rc::gen::inRange(1, 3'000'000);
  const auto message = std::int64_t{*rc::gen::inRange(1000, 400'000)};
  const auto name = *rc::gen::elementOf(
      std::vector<std::string>{"binary-blocks", "direct-exchange", "multi-ring", "parameter-server",
                               "recursive-doubling", "double-binary-tree"});
  const models::Schedule s = schedule(name, ranks);
  CommunicationCost c = cost(1e-4, message);
  const double as_fast = time(s, c, bytes);
  c.intra.beta = SecondsPerByte{beta / 50};
  RC_ASSERT(std::abs(time(s, c, bytes) - as_fast) < 1e-9 * as_fast);
}

TEST(ExecutorEngine, CutTransfersHideLatencyBehindTransfers) {
  // 14 steps of 125,000 bytes: 1.25 ms each, and as much latency again if they are not cut.
  const models::Schedule ring = schedule("ring", 8);
  const double uncut_time = time(ring, cost(1e-3, uncut), 1e6);
  const double cut_time = time(ring, cost(1e-3, 12'500), 1e6);
  EXPECT_NEAR(uncut_time, 14 * (1e-3 + 1.25e-3), 1e-9);
  // Ten messages a part: the link never waits once the first is through.
  EXPECT_LT(cut_time, 0.66 * uncut_time);
  EXPECT_GE(cut_time, 14 * 1.25e-3);
}

TEST(ExecutorEngine, AMessageGapIsPaidForEachMessageOfARank) {
  const models::Schedule ring = schedule("ring", 4);
  const double without = time(ring, cost(1e-3, uncut), 4e4);
  EXPECT_NEAR(time(ring, cost(1e-3, uncut, 2e-4), 4e4), without + 6 * 2e-4, 1e-9);
}

// Messages between nodes have a header, and messages within a node have none.
RC_GTEST_PROP(ExecutorEngine, AHeaderIsPaidOnTheLinkForEachMessage, ()) {
  const int ranks = *rc::gen::inRange(2, 9);
  const double bytes = ranks * *rc::gen::inRange(1, 100'000);
  const double header = *rc::gen::inRange(0, 200);
  CommunicationCost c = cost(1e-4, uncut);
  c.transport->message_header = Bytes{header};
  const models::Schedule ring = schedule("ring", ranks);
  const double expected = 2.0 * (ranks - 1) * (1e-4 + (bytes / ranks + header) * beta);
  RC_ASSERT(std::abs(time(ring, c, bytes) - expected) < 1e-9 * expected);
  c.ranks_per_node = ranks;
  RC_ASSERT(std::abs(time(ring, c, bytes) - (expected - 2.0 * (ranks - 1) * header * beta)) <
            1e-9 * expected);
}

TEST(ExecutorEngine, AlphaMayDependOnTheSizeOfTheMessage) {
  CommunicationCost c = cost(1e-3, uncut);
  c.transport->nic = {{Bytes{0}, Seconds{1e-3}, SecondsPerByte{0}},
                      {Bytes{5000}, Seconds{2e-3}, SecondsPerByte{1e-8}}};
  const models::Schedule ring = schedule("ring", 4);
  EXPECT_NEAR(time(ring, c, 4 * 1000), 6 * (1e-3 + 1000 * beta), 1e-9);
  EXPECT_NEAR(time(ring, c, 4 * 10'000), 6 * (2e-3 + 10'000 * 1e-8 + 10'000 * beta), 1e-9);
}

TEST(ExecutorEngine, AlphaGrowsWithTheMessagesThatAreOnTheirWay) {
  CommunicationCost c = cost(0, uncut);
  c.transport->nic = {{Bytes{0}, Seconds{5e-3}, SecondsPerByte{0}}};
  c.transport->nic_alone = {{Bytes{0}, Seconds{1e-3}, SecondsPerByte{0}}};
  const double transfer = 5e4 * beta;
  // Each of 5 ranks sends in every step.
  EXPECT_NEAR(time(schedule("ring", 5), c, 5 * 5e4), 8 * (5e-3 + transfer), 1e-9);
  const auto message = [](int from) {
    return models::Schedule(models::PointToPoint{.ranks = 5, .from = from, .to = from + 1});
  };
  EXPECT_NEAR(time(message(0), c, 5e4), 1e-3 + transfer, 1e-9);
  // One other of four.
  EXPECT_NEAR(time(models::parallel({message(0), message(2)}), c, 5e4), 2e-3 + transfer, 1e-9);
  // What takes longer alone is taken to be as fast as among others.
  c.transport->nic_alone.front().alpha = Seconds{9e-3};
  EXPECT_NEAR(time(message(0), c, 5e4), 5e-3 + transfer, 1e-9);
}

TEST(ExecutorEngine, HalvingDoublingGainsFromLinksThatCarryOneMessageAfterTheOther) {
  // What is landed first was sent first; where links are shared evenly, later messages delay it.
  const models::Schedule schedule_of_4 = schedule("halving-doubling", 4);
  CommunicationCost c = cost(0, 50'000);
  const double fifo = time(schedule_of_4, c, 3.2e6);
  c.transport->is_fair = true;
  EXPECT_GT(time(schedule_of_4, c, 3.2e6), 1.02 * fifo);
}

TEST(ExecutorEngine, CollectivesInFlightShareLinks) {
  const models::Schedule ring = schedule("ring", 4);
  const CommunicationCost c = cost(1e-4, 50'000);
  ExecutorEngine engine({&ring, 1}, c);
  const double alone = engine.completion(0, Bytes{1e6}).last().value();
  std::vector<double> ends;
  engine.run(
      [](Launcher& launcher) {
        for (int id = 0; id < 3; ++id)
          launcher.launch(id, {.schedule = 0, .bytes = Bytes{1e6}, .at = Seconds{0}});
      },
      [&](int, Seconds at, Launcher&) { ends.push_back(at.value()); });
  ASSERT_EQ(ends.size(), 3U);
  EXPECT_GE(ends.back(), 3 * 1.5e6 * beta);
  EXPECT_LE(ends.back(), 3 * alone);
}

TEST(ExecutorEngine, ARankThatIsLateDelaysTheOthersByNoMore) {
  const models::Schedule ring = schedule("ring", 4);
  const CommunicationCost c = cost(1e-4, 50'000);
  ExecutorEngine engine({&ring, 1}, c);
  const double on_time = engine.completion(0, Bytes{1e6}).last().value();
  const std::vector<Seconds> ready = {Seconds{0}, Seconds{0.5}, Seconds{0}, Seconds{0}};
  const double late = engine.completion(0, Bytes{1e6}, ready).last().value();
  EXPECT_GE(late, 0.5);
  EXPECT_LE(late, 0.5 + on_time + 1e-12);
  // The next collective starts from rest.
  EXPECT_DOUBLE_EQ(engine.completion(0, Bytes{1e6}).last().value(), on_time);
}

RC_GTEST_PROP(ExecutorEngine, CollectivesOfAStreamEndInOrder, ()) {
  const int ranks = *rc::gen::inRange(2, 13);
  const auto name = *rc::gen::elementOf(
      std::vector<std::string>{"ring", "halving-doubling", "binary-blocks", "double-binary-tree"});
  const models::Schedule s = schedule(name, ranks);
  const CommunicationCost c = cost(1e-4, 50'000);
  ExecutorEngine engine({&s, 1}, c);
  const auto count = *rc::gen::inRange<std::size_t>(1, 5);
  std::vector<ExecutorEngine::Queued> queued;
  double sum = 0;
  double longest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Bytes bytes{static_cast<double>(*rc::gen::inRange(1, 500'000))};
    queued.push_back({{.schedule = 0, .bytes = bytes, .at = Seconds{0}}, 0});
    const double alone = engine.completion(0, bytes).last().value();
    sum += alone;
    longest = std::max(longest, alone);
  }
  std::vector<Seconds> ends;
  for (const auto& of_ranks : engine.in_order(queued))
    ends.push_back(*std::max_element(of_ranks.begin(), of_ranks.end()));
  RC_ASSERT(std::is_sorted(ends.begin(), ends.end()));
  RC_ASSERT(ends.back().value() >= longest * (1 - 1e-12));
  // Messages of two collectives may meet in a queue, which delays one by at most the other.
  RC_ASSERT(ends.back().value() <= 1.5 * sum);
}

TEST(ExecutorEngine, ACollectiveStartsWhenItIsReadyAndItsStreamIsFree) {
  const models::Schedule ring = schedule("ring", 4);
  const CommunicationCost c = cost(1e-4, uncut);
  ExecutorEngine engine({&ring, 1}, c);
  const double alone = engine.completion(0, Bytes{4e4}).last().value();
  const auto launch = [](double at_s, int stream) {
    return ExecutorEngine::Queued{{.schedule = 0, .bytes = Bytes{4e4}, .at = Seconds{at_s}},
                                  stream};
  };
  // All ranks of a ring are done at once.
  const auto late = engine.in_order(std::vector{launch(0, 0), launch(1, 0)});
  EXPECT_NEAR(late[1][0].value(), 1 + alone, 1e-9);
  const auto queued = engine.in_order(std::vector{launch(0, 0), launch(0, 0)});
  EXPECT_NEAR(queued[1][0].value(), 2 * alone, 1e-9);
  const auto together = engine.in_order(std::vector{launch(0, 0), launch(0, 1)});
  EXPECT_LT(together[1][0].value(), 2 * alone - 1e-9);
}

// Rounding says which of several messages that leave at the same time goes first.
RC_GTEST_PROP(ExecutorEngine, RanksThatAreAllAsLateAreDoneAsMuchLater, ()) {
  const int ranks = *rc::gen::inRange(2, 10);
  const auto name =
      *rc::gen::elementOf(std::vector<std::string>{"ring", "binary-blocks", "parameter-server"});
  const models::Schedule s = schedule(name, ranks);
  ExecutorEngine engine({&s, 1}, cost(1e-4, 50'000));
  const Bytes bytes{static_cast<double>(*rc::gen::inRange(1, 500'000))};
  const std::vector<ExecutorEngine::Queued> queued(
      2, {{.schedule = 0, .bytes = bytes, .at = Seconds{0}}, 0});
  const double late = *rc::gen::inRange(0, 1000) * 1e-3;
  const auto ends = engine.in_order(queued);
  const auto later =
      engine.in_order(queued, std::vector(static_cast<std::size_t>(ranks), Seconds{late}));
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (std::size_t rank = 0; rank < ends[i].size(); ++rank)
      RC_ASSERT(std::abs((later[i][rank] - ends[i][rank]).value() - late) <=
                0.1 * ends.back()[rank].value());
  }
}

// Racks of two, whose uplinks have a tenth of a NIC's bandwidth. Ranks 0 and 3 exchange two halves
// across, 50 ms each; meanwhile ranks 2 and 3 exchange as much within their rack. What is still to
// come over the uplink keeps nobody from the NIC behind it: these wait for their own NICs only,
// which have at most another half each to send first.
TEST(ExecutorEngine, WhatWaitsForAnUplinkHoldsNoLinkBehindIt) {
  CommunicationCost c = cost(0, uncut);
  c.fabric = {.kind = models::FabricKind::fat_tree, .levels = {{2, 20.0}}};
  c.nodes = 4;
  const models::Schedule pair = schedule("ring", 2);
  const std::vector<models::Schedule> schedules = {models::within(4, test::in_order({0, 3}), pair),
                                                   models::within(4, test::in_order({2, 3}), pair)};
  ExecutorEngine engine(schedules, c);
  const Bytes bytes{1e6};
  const auto ends = engine.in_order(std::vector<ExecutorEngine::Queued>{
      {{.schedule = 0, .bytes = bytes, .at = Seconds{0}}, 0},
      {{.schedule = 1, .bytes = bytes, .at = Seconds{1e-3}}, 1}});
  EXPECT_NEAR(ends[0][0].value(), 100e-3, 2e-3);
  EXPECT_GE(ends[1][2].value(), 11e-3);
  EXPECT_LE(ends[1][2].value(), 18e-3);
}

}  // namespace
}  // namespace paceline::simulator
