#include "simulator/iteration/ordered_collectives.h"

#include <gtest/gtest.h>

#include "simulator/iteration/steady_state.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

using test::all_reduce_times;
using test::one_gigabyte_a_second;

CommunicationCost with_transport(CommunicationCost cost) {
  constexpr std::int64_t uncut = std::int64_t{1} << 40;
  cost.transport = TransportCost{.message_sizes = {uncut, uncut}, .message_gap = Seconds{0}};
  return cost;
}

// Two buckets of 4 MB between 2 ranks take 4 ms each: two steps of 2 MB.
//
// On one stream the second bucket's ring begins when the first one's is done, which is everywhere
// at once; its duration is counted from there.
TEST(OrderedCollectives, ABucketsDurationCountsFromTheEndOfTheOneBefore) {
  const models::NetworkWork network = test::chain_network({1'000'000, 1'000'000});
  for (const double backward_s : {0.0, 3e-3, 10e-3}) {
    ComputeTimes compute;
    compute.layers = {{Seconds{0}, Seconds{backward_s}}, {Seconds{0}, Seconds{0}}};
    const models::Plan plan = models::make_plan(models::strategy("ring"), network.gradients, 2,
                                                models::WireType::fp32, {});
    ExecutorEngine engine(test::schedules_of(plan), with_transport(one_gigabyte_a_second()));
    const IterationDag alone = test::dag_of_buckets_alone(network, plan, compute, engine);
    const IterationDag timed = with_ordered_collectives(alone, plan, engine);
    const std::vector<double> times = all_reduce_times(timed);
    ASSERT_EQ(times.size(), 2U);
    EXPECT_NEAR(times[0], 4e-3, 1e-12);
    EXPECT_NEAR(times[1], 4e-3, 1e-12);
    EXPECT_NEAR(steady_state(timed).period.value(), steady_state(alone).period.value(), 1e-12);
  }
}

// The rank that is folded into the block of four is done at another time than those of the block:
// the next bucket follows on the heels of whoever is first.
TEST(OrderedCollectives, RanksThatAreDoneDoNotWaitForTheOthers) {
  const models::NetworkWork network = test::chain_network({1'000'000, 1'000'000, 1'000'000});
  ComputeTimes compute;
  compute.layers.assign(3, {Seconds{0}, Seconds{0}});
  const models::Plan plan = models::make_plan(models::strategy("binary-blocks"), network.gradients,
                                              5, models::WireType::fp32, {});
  CommunicationCost cost = with_transport(one_gigabyte_a_second());
  cost.nic.alpha = Seconds{1e-4};
  cost.transport->message_sizes = {16'384, 262'144};
  ExecutorEngine engine(test::schedules_of(plan), cost);
  const IterationDag alone = test::dag_of_buckets_alone(network, plan, compute, engine);
  const double in_order =
      steady_state(with_ordered_collectives(alone, plan, engine)).period.value();
  EXPECT_LT(in_order, 0.99 * steady_state(alone).period.value());
  EXPECT_GT(in_order, all_reduce_times(alone)[0]);
}

// A server and two workers; a bucket takes 1 ms on a link. From rest, pushes are there at 1 and
// 2 ms, and pulls at 3 and 4: the first worker begins the next iteration a millisecond before the
// second. Its push is then over when that of the second begins, and an iteration takes 3 ms, not 4.
TEST(OrderedCollectives, RanksBeginTheNextIterationWhenTheyAreDoneByHand) {
  const models::NetworkWork network = test::chain_network({250'000});
  ComputeTimes compute;
  compute.layers.assign(1, {Seconds{0}, Seconds{0}});
  const models::Plan plan =
      models::make_plan(models::strategy("parameter-server"), network.gradients, 3,
                        models::WireType::fp32, {.servers = 1});
  ExecutorEngine engine(test::schedules_of(plan), with_transport(one_gigabyte_a_second()));
  const IterationDag alone = test::dag_of_buckets_alone(network, plan, compute, engine);
  const IterationDag timed = with_ordered_collectives(alone, plan, engine);
  EXPECT_NEAR(steady_state(timed).period.value(), 3e-3, 1e-9);
  ASSERT_EQ(all_reduce_times(timed).size(), 1U);
  EXPECT_NEAR(all_reduce_times(timed)[0], 3e-3, 1e-9);
  EXPECT_NEAR(all_reduce_times(alone)[0], 4e-3, 1e-9);
}

}  // namespace
}  // namespace paceline::simulator
