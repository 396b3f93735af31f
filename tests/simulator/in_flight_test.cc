#include "simulator/iteration/in_flight.h"

#include <gtest/gtest.h>

#include <random>

#include "simulator/engine/flow_engine.h"
#include "simulator/iteration/steady_state.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

using models::Overlap;

using test::all_reduce_times;
using test::one_gigabyte_a_second;

// Two layers of 4 MB each; their all-reduces over 2 ranks are two steps of 2 MB, 2 ms each alone.
struct TwoBuckets {
  models::NetworkWork network = test::chain_network({1'000'000, 1'000'000});
  ComputeTimes compute;

  explicit TwoBuckets(double backward_of_first_layer_s) {
    compute.layers = {{Seconds{0}, Seconds{backward_of_first_layer_s}}, {Seconds{0}, Seconds{0}}};
  }
  [[nodiscard]] std::vector<double> times(int streams) const {
    const models::Plan plan = models::make_plan(models::strategy("ring"), network.gradients, 2,
                                                models::WireType::fp32, {.streams = streams});
    FlowEngine engine(test::schedules_of(plan), one_gigabyte_a_second());
    const IterationDag alone = test::dag_of_buckets_alone(network, plan, compute, engine);
    return all_reduce_times(with_buckets_in_flight(alone, plan, engine));
  }
};

TEST(BucketsInFlight, TwoThatShareANicTakeTwiceAsLong) {
  const std::vector<double> times = TwoBuckets(0).times(2);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_NEAR(times[0], 8e-3, 1e-12);
  EXPECT_NEAR(times[1], 8e-3, 1e-12);
}

// The second starts 1 ms later. 0-1 ms: A sends 1 of its 2 MB. 1-3: both at half the speed; A is
// done with its first step, B has 1 MB to go. 3-5: B is done with its first step, A has 1 MB to go.
// 5-7: A is done, B has 1 MB to go, alone: 8.
TEST(BucketsInFlight, OneThatStartsLaterByHand) {
  const std::vector<double> times = TwoBuckets(1e-3).times(2);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_NEAR(times[0], 7e-3, 1e-12);
  EXPECT_NEAR(times[1], 7e-3, 1e-12);
}

TEST(BucketsInFlight, OneThatStartsAfterTheOtherIsAlone) {
  for (const double time : TwoBuckets(5e-3).times(2)) EXPECT_NEAR(time, 4e-3, 1e-12);
  for (const double time : TwoBuckets(1e-3).times(1)) EXPECT_NEAR(time, 4e-3, 1e-12);
}

class RandomInFlight : public testing::TestWithParam<Overlap> {};

// A chain of layers on 8 ranks, 4 behind a NIC.
struct Job {
  models::NetworkWork network;
  ComputeTimes compute;
  models::Plan plan;
  FlowEngine engine;

  Job(std::mt19937& random, Overlap overlap, int streams)
      : network(drawn_network(random)),
        compute(drawn_compute(random, network)),
        plan(models::make_plan(models::strategy("ring"), network.gradients, 8,
                               models::WireType::fp32, {.streams = streams})),
        engine(test::schedules_of(plan), cost()) {
    plan.overlap = overlap;
  }
  static CommunicationCost cost() {
    CommunicationCost cost = one_gigabyte_a_second();
    cost.ranks_per_node = 4;
    cost.intra = {Seconds{1e-6}, SecondsPerByte{1e-10}};
    cost.nic.alpha = Seconds{1e-5};
    cost.gamma = SecondsPerByte{1e-11};
    return cost;
  }
  static models::NetworkWork drawn_network(std::mt19937& random) {
    std::vector<std::int64_t> elements(2 + random() % 8);
    for (auto& count : elements) count = std::uniform_int_distribution(1, 1'000'000)(random);
    return test::chain_network(elements);
  }
  static ComputeTimes drawn_compute(std::mt19937& random, const models::NetworkWork& network) {
    const auto up_to = [&random](double most) {
      return Seconds{std::uniform_real_distribution(0.0, most)(random)};
    };
    ComputeTimes compute;
    for (std::size_t i = 0; i < network.layers.size(); ++i)
      compute.layers.push_back({up_to(5e-3), up_to(10e-3)});
    compute.update = Seconds{1e-3};
    return compute;
  }
  [[nodiscard]] IterationDag alone() {
    return test::dag_of_buckets_alone(network, plan, compute, engine);
  }
};

TEST_P(RandomInFlight, OnOneStreamEachTakesAsLongAsAlone) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 20; ++trial) {
    Job job(random, GetParam(), 1);
    const IterationDag alone = job.alone();
    const IterationDag timed = with_buckets_in_flight(alone, job.plan, job.engine);
    for (std::size_t task = 0; task < alone.tasks().size(); ++task) {
      const double expected = alone.tasks()[task].duration.value();
      EXPECT_NEAR(timed.tasks()[task].duration.value(), expected, 1e-9 * expected);
    }
  }
}

TEST_P(RandomInFlight, NoneIsFasterThanAlone) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 20; ++trial) {
    Job job(random, GetParam(), 2 + trial % 3);
    const IterationDag alone = job.alone();
    const std::vector<double> least = all_reduce_times(alone);
    const std::vector<double> found =
        all_reduce_times(with_buckets_in_flight(alone, job.plan, job.engine));
    ASSERT_EQ(found.size(), least.size());
    for (std::size_t i = 0; i < least.size(); ++i) EXPECT_GE(found[i], least[i] * (1 - 1e-9));
  }
}

// More iterations from rest change nothing, and the DAG with those times has a steady state.
TEST_P(RandomInFlight, ReachesASteadyState) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 20; ++trial) {
    Job job(random, GetParam(), 2 + trial % 3);
    const IterationDag alone = job.alone();
    const SteadyIteration found = steady_state(with_buckets_in_flight(alone, job.plan, job.engine));
    const SteadyIteration later =
        steady_state(with_buckets_in_flight(alone, job.plan, job.engine, 64));
    EXPECT_TRUE(found.converged) << trial;
    // Where iterations come to no steady state soon, the period is a mean over some of them.
    EXPECT_NEAR(found.period.value(), later.period.value(), 1e-3 * later.period.value()) << trial;
    EXPECT_GE(found.period.value(), job.compute.total().value() * (1 - 1e-9)) << trial;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, RandomInFlight,
                         testing::Values(Overlap::wait_free, Overlap::none,
                                         Overlap::double_buffered, Overlap::priority));

}  // namespace
}  // namespace paceline::simulator
