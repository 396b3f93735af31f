#include "simulator/iteration/dag.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "simulator/iteration/steady_state.h"
#include "simulator/planner/recurrence.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

using models::Overlap;
using test::chain_network;
using test::random_job;
using test::RandomJob;

// Two layers; forward 1 s and 2 s, backward 4 s and 3 s, update 0.5 s; two buckets of 5 s.
//   compute  F0 0-1, F1 1-3, B1 3-6, B0 6-10, then the update when both buckets are there
//   wait-free: bucket 0 (layer 1) 6-11, bucket 1 (layer 0) 11-16, update 16-16.5
struct TwoLayers {
  models::NetworkWork network = chain_network({10, 10});
  ComputeTimes compute{.layers = {{Seconds{1}, Seconds{4}}, {Seconds{2}, Seconds{3}}},
                       .update = Seconds{0.5},
                       .provenance = {},
                       .source = {}};
  std::vector<BucketTimes> buckets =
      std::vector<BucketTimes>(2, BucketTimes{{}, {}, Seconds{5}, {}});

  [[nodiscard]] IterationDag dag(Overlap overlap, const InputTimes& input = {}) const {
    models::Plan plan = models::make_plan(models::strategy("ring"), network.gradients, 2,
                                          models::WireType::fp32, {});
    plan.overlap = overlap;
    return {network, plan, compute, buckets, input};
  }
  [[nodiscard]] double period(Overlap overlap, const InputTimes& input = {}) const {
    const IterationDag d = dag(overlap, input);
    return steady_state(d).period.value();
  }
};

TEST(IterationDag, WaitFreePeriodByHand) {
  EXPECT_DOUBLE_EQ(TwoLayers().period(Overlap::wait_free), 16.5);
}

// Both buckets after backward: 10 + 5 + 5 + 0.5.
TEST(IterationDag, NoOverlapPeriodByHand) {
  EXPECT_DOUBLE_EQ(TwoLayers().period(Overlap::none), 20.5);
}

// Compute is 10.5 s an iteration and communication 10 s; they overlap entirely.
TEST(IterationDag, DoubleBufferedPeriodIsTheLargerOfComputeAndCommunication) {
  TwoLayers job;
  EXPECT_DOUBLE_EQ(job.period(Overlap::double_buffered), 10.5);
  job.buckets.assign(2, BucketTimes{{}, {}, Seconds{8}, {}});
  EXPECT_DOUBLE_EQ(job.period(Overlap::double_buffered), 16);
}

// Update on the communication stream, a quarter of a second for each bucket: bucket 0 6-11, its
// update 11-11.25, bucket 1 11.25-16.25, update 16.25-16.5. Layer 0 can start at 16.5.
TEST(IterationDag, PriorityPeriodByHand) {
  EXPECT_DOUBLE_EQ(TwoLayers().period(Overlap::priority), 16.5);
}

// With the last layer's bucket late in need, priority lets layer 0's forward run below it: of three
// buckets that are ready together, layer 0's goes first.
TEST(IterationDag, PriorityBeatsWaitFreeWhenCommunicationIsTheBottleneck) {
  TwoLayers job;
  job.network = chain_network({10, 10, 10});
  job.compute.layers = {
      {Seconds{4}, Seconds{0}}, {Seconds{4}, Seconds{0}}, {Seconds{4}, Seconds{0}}};
  job.buckets.assign(3, BucketTimes{{}, {}, Seconds{5}, {}});
  EXPECT_LT(job.period(Overlap::priority), job.period(Overlap::wait_free) - 3);
}

TEST(IterationDag, SlowInputSetsThePeriod) {
  const TwoLayers job;
  EXPECT_DOUBLE_EQ(job.period(Overlap::wait_free, {Seconds{20}, Seconds{3}, Seconds{1}}), 20);
  EXPECT_DOUBLE_EQ(job.period(Overlap::wait_free, {Seconds{2}, Seconds{30}, Seconds{1}}), 30);
  EXPECT_DOUBLE_EQ(job.period(Overlap::wait_free, {Seconds{2}, Seconds{3}, Seconds{1}}), 16.5);
}

// Communication is slower than compute by a millionth: from rest, its stream falls behind for a
// million iterations before compute has to wait for it.
TEST(SteadyState, SkipsALongTransient) {
  TwoLayers job;
  job.buckets.assign(2, BucketTimes{{}, {}, Seconds{5.250005}, {}});
  const IterationDag dag = job.dag(Overlap::double_buffered);
  const SteadyIteration steady = steady_state(dag);
  EXPECT_TRUE(steady.converged);
  EXPECT_NEAR(steady.period.value(), 10.50001, 1e-9);
}

TEST(TimeSpent, AddsUpToThePeriod) {
  const TwoLayers job;
  const IterationDag dag = job.dag(Overlap::wait_free);
  const TimeSpent spent = time_spent(dag, steady_state(dag));
  EXPECT_DOUBLE_EQ(spent.compute.value(), 10.5);
  EXPECT_DOUBLE_EQ(spent.update.value(), 0.5);
  EXPECT_DOUBLE_EQ(spent.exposed_communication.value(), 6);
  EXPECT_DOUBLE_EQ(spent.input_wait.value(), 0);
  EXPECT_DOUBLE_EQ(spent.communication.value(), 10);
}

TEST(TimeSpent, TellsWaitingForInputFromExposedCommunication) {
  const TwoLayers job;
  const IterationDag dag = job.dag(Overlap::wait_free, {Seconds{20}, Seconds{3}, Seconds{1}});
  const TimeSpent spent = time_spent(dag, steady_state(dag));
  EXPECT_NEAR(spent.exposed_communication.value(), 6, 1e-9);
  EXPECT_NEAR(spent.input_wait.value(), 3.5, 1e-9);
}

TEST(CriticalPath, GoesThroughBothBucketsByHand) {
  const TwoLayers job;
  const IterationDag dag = job.dag(Overlap::wait_free);
  std::vector<TaskKind> kinds;
  for (const CriticalTask& step : critical_path(dag, steady_state(dag)).tasks) {
    kinds.push_back(dag.tasks()[static_cast<std::size_t>(step.task)].kind);
  }
  const std::vector<TaskKind> expected = {TaskKind::forward,    TaskKind::forward,
                                          TaskKind::backward,   TaskKind::all_reduce,
                                          TaskKind::all_reduce, TaskKind::update};
  EXPECT_EQ(kinds, expected);
}

class RandomDag : public testing::TestWithParam<Overlap> {};

TEST_P(RandomDag, TimelineRespectsEveryDependencyAndResource) {
  std::mt19937 random(20180730);
  for (int trial = 0; trial < 200; ++trial) {
    const RandomJob job = random_job(random, GetParam());
    const IterationDag dag(job.network, job.plan, job.compute, job.buckets,
                           {Seconds{0.01}, Seconds{0.02}, Seconds{0.001}});
    const SteadyIteration steady = steady_state(dag);
    ASSERT_TRUE(steady.converged);
    for (const Dependency& d : dag.dependencies()) {
      const Seconds before =
          steady.finish(dag, d.from) - static_cast<double>(d.lag) * steady.period;
      EXPECT_GE(steady.start[static_cast<std::size_t>(d.to)].value(), before.value() - 1e-9);
    }
    std::map<Resource, std::vector<std::pair<double, double>>> busy;
    for (std::size_t i = 0; i < dag.tasks().size(); ++i) {
      busy[dag.tasks()[i].resource].emplace_back(steady.start[i].value(),
                                                 steady.finish(dag, static_cast<int>(i)).value());
    }
    for (auto& [resource, intervals] : busy) {
      std::sort(intervals.begin(), intervals.end());
      for (std::size_t i = 1; i < intervals.size(); ++i)
        EXPECT_GE(intervals[i].first, intervals[i - 1].second - 1e-9);
    }
  }
}

TEST_P(RandomDag, CriticalPathIsItsPeriodsLong) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const RandomJob job = random_job(random, GetParam());
    const IterationDag dag(job.network, job.plan, job.compute, job.buckets, {});
    const SteadyIteration steady = steady_state(dag);
    ASSERT_TRUE(steady.converged);
    const CriticalPath path = critical_path(dag, steady);
    ASSERT_FALSE(path.tasks.empty());
    Seconds length;
    for (const CriticalTask& step : path.tasks)
      length += dag.tasks()[static_cast<std::size_t>(step.task)].duration;
    EXPECT_NEAR(length.value() / path.periods, steady.period.value(), 1e-9)
        << path.periods << " periods";
  }
}

// The accumulation of batches as the predictor makes it: the passes of earlier batches are in the
// first forward pass.
ComputeTimes accumulated(ComputeTimes compute, int batches) {
  compute.earlier = {batches - 1, compute.layers};
  Seconds batch;
  for (const LayerTime& layer : compute.layers) batch += layer.forward + layer.backward;
  compute.layers.front().forward += static_cast<double>(batches - 1) * batch;
  return compute;
}

TEST_P(RandomDag, BooksEarlierBatchesAsTheyCompute) {
  std::mt19937 random(19);
  for (int trial = 0; trial < 200; ++trial) {
    const RandomJob job = random_job(random, GetParam());
    const int batches = std::uniform_int_distribution<int>(1, 40)(random);
    const ComputeTimes compute = accumulated(job.compute, batches);
    const IterationDag dag(job.network, job.plan, compute, job.buckets, {});
    ComputeTimes unsaid = compute;
    unsaid.earlier = {};
    const IterationDag as_forward(job.network, job.plan, unsaid, job.buckets, {});
    EXPECT_EQ(steady_state(dag).period, steady_state(as_forward).period);

    std::map<TaskKind, double> booked;
    std::vector<LayerTime> layers(job.network.layers.size());
    for (std::size_t t = 0; t < dag.tasks().size(); ++t) {
      const Task& task = dag.tasks()[t];
      double shares = 0;
      for (const TaskPart& part : dag.parts(static_cast<int>(t))) {
        const Seconds time = part.share * task.duration;
        shares += part.share;
        booked[part.kind] += time.value();
        if (part.kind == TaskKind::forward)
          layers[static_cast<std::size_t>(part.index)].forward += time;
        if (part.kind == TaskKind::backward)
          layers[static_cast<std::size_t>(part.index)].backward += time;
      }
      EXPECT_NEAR(shares, 1, 1e-12);
    }
    Seconds forward;
    Seconds backward;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const LayerTime& batch = job.compute.layers[i];
      EXPECT_NEAR(layers[i].forward.value(), batches * batch.forward.value(), 1e-9);
      EXPECT_NEAR(layers[i].backward.value(), batches * batch.backward.value(), 1e-9);
      forward += batches * batch.forward;
      backward += batches * batch.backward;
    }
    EXPECT_NEAR(booked[TaskKind::forward], forward.value(), 1e-9);
    EXPECT_NEAR(booked[TaskKind::backward], backward.value(), 1e-9);
  }
}

// 1 + 2 forward and 3 + 4 backward, three times: the first two in the order in which they run.
TEST(TaskParts, AreThePassesOfEachBatchInTurn) {
  TwoLayers job;
  job.compute = accumulated(job.compute, 3);
  const IterationDag dag = job.dag(Overlap::wait_free);
  const std::vector<TaskPart> parts = dag.parts(0);
  const std::vector<std::pair<TaskKind, int>> batch = {{TaskKind::forward, 0},
                                                       {TaskKind::forward, 1},
                                                       {TaskKind::backward, 1},
                                                       {TaskKind::backward, 0}};
  ASSERT_EQ(parts.size(), 9u);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ(std::pair(parts[i].kind, parts[i].index), batch[i % 4]) << i;
  EXPECT_EQ(parts[8].kind, TaskKind::forward);
  EXPECT_DOUBLE_EQ(parts[0].share, 1.0 / 21);
  EXPECT_DOUBLE_EQ(parts[3].share, 4.0 / 21);
  EXPECT_EQ(dag.parts(1).size(), 1u);
}

// However many batches there are, a timeline holds 16 groups of them.
TEST(TaskParts, AreNoMoreThanOfSixteenBatches) {
  TwoLayers job;
  job.compute = accumulated(job.compute, 1 << 16);
  EXPECT_EQ(job.dag(Overlap::wait_free).parts(0).size(), 4u * 16 + 1);
}

TEST_P(RandomDag, TimeSpentAddsUp) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 200; ++trial) {
    const RandomJob job = random_job(random, GetParam());
    const IterationDag dag(job.network, job.plan, job.compute, job.buckets,
                           {Seconds{0.05}, Seconds{0.06}, Seconds{0.001}});
    const SteadyIteration steady = steady_state(dag);
    const TimeSpent spent = time_spent(dag, steady);
    EXPECT_NEAR((spent.compute + spent.exposed_communication + spent.input_wait).value(),
                steady.period.value(), 1e-9);
    EXPECT_GE(spent.exposed_communication.value(), 0);
    EXPECT_GE(spent.input_wait.value(), 0);
  }
}

// Priorities choose an order by the times, and then a slower task can help; all others never.
TEST(IterationDag, ASlowerTaskNeverHelpsUnderAFixedOrder) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    for (const Overlap overlap : {Overlap::wait_free, Overlap::none, Overlap::double_buffered}) {
      RandomJob job = random_job(random, overlap);
      const IterationDag before(job.network, job.plan, job.compute, job.buckets, {});
      job.compute.layers[random() % job.compute.layers.size()].backward += Seconds{0.03};
      job.buckets[random() % job.buckets.size()].all_reduce += Seconds{0.02};
      const IterationDag after(job.network, job.plan, job.compute, job.buckets, {});
      EXPECT_GE(steady_state(after).period.value(), steady_state(before).period.value() - 1e-12);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, RandomDag,
                         testing::Values(Overlap::wait_free, Overlap::none,
                                         Overlap::double_buffered, Overlap::priority),
                         [](const auto& policy) {
                           std::string text(name(policy.param));
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

// Without input tasks, and with the update after all buckets, an iteration starts from rest: its
// period is the recurrence plus the update.
TEST(Recurrence, EqualsTheDag) {
  std::mt19937 random(2018);
  for (int trial = 0; trial < 500; ++trial) {
    for (const Overlap overlap : {Overlap::wait_free, Overlap::none}) {
      const RandomJob job = random_job(random, overlap);
      const IterationDag dag(job.network, job.plan, job.compute, job.buckets, {});
      std::vector<Seconds> durations;
      for (const BucketTimes& b : job.buckets) durations.push_back(b.total());
      const Seconds finish =
          last_finish(ready_times(job.network, job.plan, job.compute), durations);
      const Seconds end_of_backward = job.compute.total() - job.compute.update;
      EXPECT_NEAR(steady_state(dag).period.value(),
                  (std::max(finish, end_of_backward) + job.compute.update).value(), 1e-9);
    }
  }
}

}  // namespace
}  // namespace paceline::simulator
