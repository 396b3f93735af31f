#include "simulator/iteration/plan_timing.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/plan/strategy.h"
#include "simulator/engine/effort.h"
#include "simulator/engine/prepare.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

const models::NetworkWork network = test::chain_network({1000, 2000, 3000});

CommunicationCost two_ranks_on_a_node() {
  CommunicationCost cost = test::one_gigabyte_a_second();
  cost.ranks_per_node = 2;
  cost.intra = {Seconds{1e-6}, SecondsPerByte{1e-10}};
  return cost;
}

CommunicationCost with_transport() {
  CommunicationCost cost = test::one_gigabyte_a_second();
  cost.transport = TransportCost{};
  cost.transport->message_sizes = {1024, 65536, 131072};
  return cost;
}

models::Plan plan_of(std::string_view strategy, int ranks = 8, int streams = 1) {
  return models::make_plan(models::strategy(strategy), network.gradients, ranks,
                           models::WireType::fp32, {.group_size = 2, .streams = streams});
}

TimingMethod method_of(const models::Plan& plan, const CommunicationCost& cost,
                       EngineKind kind = EngineKind::automatic) {
  CollectiveTimer engine(cost, kind);
  return timing_method(plan, engine);
}

TEST(TimingMethod, OneBucketAtATimeIsTimedByTheLeastEngineThatSeesAllSharing) {
  EXPECT_EQ(method_of(plan_of("ring"), test::one_gigabyte_a_second()).engine, EngineKind::step);
  const TimingMethod behind_one_nic = method_of(plan_of("halving-doubling"), two_ranks_on_a_node());
  EXPECT_EQ(behind_one_nic.engine, EngineKind::flow);
  EXPECT_EQ(behind_one_nic.beside, Beside::nothing);
}

TEST(TimingMethod, APlanOfTwoSchedulesIsSaidToBeTimedByTheMoreDetailedEngine) {
  models::Plan plan = plan_of("halving-doubling");
  plan.schedules.push_back(plan_of("ring").schedules.front());
  EXPECT_EQ(method_of(plan, two_ranks_on_a_node()).engine, EngineKind::flow);
  std::swap(plan.schedules.front(), plan.schedules.back());
  EXPECT_EQ(method_of(plan, two_ranks_on_a_node()).engine, EngineKind::flow);
}

TEST(TimingMethod, EnginesAreRankedByWhatTheySee) {
  EXPECT_EQ(more_detailed(EngineKind::step, EngineKind::flow), EngineKind::flow);
  EXPECT_EQ(more_detailed(EngineKind::executor, EngineKind::flow), EngineKind::executor);
  EXPECT_EQ(more_detailed(EngineKind::step, EngineKind::step), EngineKind::step);
  EXPECT_EQ(more_detailed(EngineKind::simgrid, EngineKind::executor), EngineKind::simgrid);
}

TEST(TimingMethod, SeveralStreamsAreTimedTogetherAndNotByTheStepEngine) {
  const models::Plan plan = plan_of("ring", 8, 2);
  const TimingMethod method = method_of(plan, test::one_gigabyte_a_second());
  EXPECT_EQ(method.beside, Beside::other_buckets);
  EXPECT_EQ(method.engine, EngineKind::flow);
  EXPECT_THROW((void)method_of(plan, test::one_gigabyte_a_second(), EngineKind::step), InputError);
}

TEST(TimingMethod, OurTransportRunsBucketsOneBehindTheOtherWhereTheUpdateWaitsForAll) {
  models::Plan plan = plan_of("ring");
  EXPECT_EQ(method_of(plan, with_transport()).beside, Beside::buckets_behind);
  EXPECT_EQ(method_of(plan, with_transport()).engine, EngineKind::executor);
  EXPECT_EQ(method_of(plan, with_transport(), EngineKind::flow).beside, Beside::nothing);
  plan.overlap = models::Overlap::double_buffered;
  EXPECT_EQ(method_of(plan, with_transport()).beside, Beside::nothing);
}

TEST(TimingMethod, NothingTravelsAmongOneRankOrByALibrarysOwnAllReduce) {
  EXPECT_EQ(method_of(plan_of("ring", 1), with_transport()).beside, Beside::nothing);
  EXPECT_EQ(method_of(plan_of("nccl"), with_transport()).engine, EngineKind::step);
}

// With an unlimited time budget, or where another engine was asked for, nothing is replaced or refused.
TEST(TimingMethod, InHasteTheStepEngineTakesThePlaceOfAFlowEngineWithTooMuchToFollow) {
  const CommunicationCost cost = two_ranks_on_a_node();
  models::Plan plan = models::make_plan(models::strategy("double-binary-tree"), network.gradients,
                                        1024, models::WireType::fp32, {.segments = 32});
  CollectiveTimer engine(cost, EngineKind::automatic);
  const TimingMethod hasty = timing_method(plan, engine, TimeBudget::bounded);
  EXPECT_EQ(hasty.engine, EngineKind::step);
  EXPECT_GT(hasty.not_followed, most_followed_in_time);
  EXPECT_EQ(timing_method(plan, engine).engine, EngineKind::flow);
  CollectiveTimer asked(cost, EngineKind::flow);
  EXPECT_EQ(timing_method(plan, asked, TimeBudget::bounded).engine, EngineKind::flow);
  EXPECT_EQ(timing_method(plan, engine, TimeBudget::bounded_by_any_engine).engine,
            EngineKind::step);
  EXPECT_THROW((void)timing_method(plan, asked, TimeBudget::bounded_by_any_engine),
               FollowingTakesLong);
  const models::Plan small = plan_of("double-binary-tree");
  EXPECT_EQ(timing_method(small, asked, TimeBudget::bounded_by_any_engine).engine,
            EngineKind::flow);
  EXPECT_EQ(timing_method(small, engine, TimeBudget::bounded).engine, EngineKind::flow);
  EXPECT_EQ(timing_method(small, engine, TimeBudget::bounded).not_followed, 0);
}

TEST(TimingMethod, InHasteBucketsThatTravelTogetherAreRefusedWhereThereIsTooMuchToFollow) {
  const models::NetworkWork deep = test::chain_network(std::vector<std::int64_t>(100, 1000));
  const models::Plan plan = models::make_plan(models::strategy("parameter-server"), deep.gradients,
                                              1024, models::WireType::fp32, {.servers = 128});
  CollectiveTimer engine(two_ranks_on_a_node(), EngineKind::automatic);
  EXPECT_EQ(timing_method(plan, engine).beside, Beside::other_buckets);
  try {
    (void)timing_method(plan, engine, TimeBudget::bounded);
    FAIL() << "it has too many messages";
  } catch (const TooManyMessages& error) {
    EXPECT_STREQ(error.what(),
                 "its buckets travel together, and that takes 0.61 million messages to follow; "
                 "ask for it by --strategy parameter-server");
  }
}

// Named, too, where it would take more than half a minute, unless the engine was named.
TEST(TimingMethod, TheStepEngineTakesThePlaceOfAFlowEngineThatWouldFollowForMinutes) {
  const models::NetworkWork deep = test::chain_network({1000, 2000, 3000, 4000, 5000});
  const models::Plan plan =
      models::make_plan(models::strategy("double-binary-tree"), deep.gradients, 8192,
                        models::WireType::fp32, {.segments = 64});
  CollectiveTimer engine(two_ranks_on_a_node(), EngineKind::automatic);
  EXPECT_EQ(timing_method(plan, engine).engine, EngineKind::step);
  EXPECT_GT(timing_method(plan, engine).not_followed, most_followed_when_named);
  CollectiveTimer asked(two_ranks_on_a_node(), EngineKind::flow);
  EXPECT_EQ(timing_method(plan, asked).engine, EngineKind::flow);
}

// Whether the row was named or not.
TEST(TimingMethod, BucketsThatTravelTogetherAreRefusedWhereTheyTakeTooMuchMemory) {
  const models::NetworkWork deep = test::chain_network(std::vector<std::int64_t>(100, 1000));
  const auto method = [&](int ranks, TimeBudget time_budget) {
    const models::Plan plan =
        models::make_plan(models::strategy("parameter-server"), deep.gradients, ranks,
                          models::WireType::fp32, {.servers = ranks / 8});
    CollectiveTimer engine(two_ranks_on_a_node(), EngineKind::automatic);
    return timing_method(plan, engine, time_budget);
  };
  EXPECT_EQ(method(16384, TimeBudget::unlimited).beside, Beside::other_buckets);
  for (const TimeBudget time_budget :
       {TimeBudget::unlimited, TimeBudget::bounded, TimeBudget::bounded_by_any_engine}) {
    try {
      (void)method(65536, time_budget);
      FAIL() << "it has too many messages";
    } catch (const FollowingTakesTooMuch& error) {
      EXPECT_STREQ(error.what(),
                   "its buckets travel together, and that takes 39 million messages to follow, in "
                   "3.3 GB of memory; choose fewer ranks, or fewer and larger buckets by --theta");
    }
  }
}

TEST(StretchedIteration, RepeatsUntilThePeriodStaysOrTenTimes) {
  const models::Plan plan = plan_of("ring");
  ComputeTimes compute;
  compute.layers.assign(3, {Seconds{1e-3}, Seconds{2e-3}});
  compute.beside_traffic.assign(3, {Seconds{2e-3}, Seconds{4e-3}});
  const std::vector<BucketTimes> buckets(plan.buckets.size(), {{}, {}, Seconds{1e-3}, {}});
  int rounds = 0;
  const auto timed_with = [&](const ComputeTimes& at) {
    ++rounds;
    return IterationDag(network, plan, at, buckets, {});
  };
  TimedIteration iteration{timed_with(compute), {}};
  iteration.steady = steady_state(iteration.dag);
  const Seconds alone = iteration.steady.period;
  rounds = 0;
  const TimedIteration slow = stretched(iteration, compute, timed_with);
  EXPECT_GT(slow.steady.period, alone);
  EXPECT_GE(rounds, 2);
  EXPECT_LE(rounds, 10);
  // It is a fixed point of the rule.
  const TimedIteration again = stretched(slow, compute, timed_with);
  EXPECT_NEAR(again.steady.period.value(), slow.steady.period.value(),
              1e-3 * slow.steady.period.value());
}

}  // namespace
}  // namespace paceline::simulator
