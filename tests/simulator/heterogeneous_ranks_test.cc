// Ranks with durations of their own: the iteration of one rank where they are equal, and that of the
// straggler simulation where they differ by a factor.
#include "simulator/iteration/heterogeneous_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "simulator/iteration/steady_state.h"
#include "simulator/straggler/monte_carlo.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

using models::Overlap;
using test::random_job;
using test::RandomJob;

constexpr std::array every_overlap = {Overlap::wait_free, Overlap::none, Overlap::double_buffered,
                                      Overlap::priority};

IterationDag dag_of(const RandomJob& job) {
  return {job.network, job.plan, job.compute, job.buckets, {}};
}

// Each rank's durations, with what computes times a factor of the rank.
std::vector<std::vector<Seconds>> durations_of(const IterationDag& dag,
                                               const std::vector<double>& factors) {
  std::vector<std::vector<Seconds>> durations;
  for (const double factor : factors) {
    durations.emplace_back();
    for (const Task& task : dag.tasks())
      durations.back().push_back(task.resource == Resource::compute ? factor * task.duration
                                                                    : task.duration);
  }
  return durations;
}

TEST(HeterogeneousRanks, OfEqualRanksHaveTheSteadyState) {
  std::mt19937 random(1);
  for (const Overlap overlap : every_overlap) {
    for (int i = 0; i < 100; ++i) {
      const IterationDag dag = dag_of(random_job(random, overlap));
      const SteadyIteration steady = steady_state(dag);
      if (!steady.converged) continue;
      for (const std::size_t ranks : {1U, 3U}) {
        const Seconds period =
            period_of_ranks(dag, durations_of(dag, std::vector<double>(ranks, 1.0)));
        EXPECT_NEAR(period.value(), steady.period.value(), 1e-9) << name(overlap) << " " << i;
      }
    }
  }
}

TEST(HeterogeneousRanks, AreThoseOfTheStragglerSimulation) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> factor(1, 3);
  for (const Overlap overlap : every_overlap) {
    for (int i = 0; i < 50; ++i) {
      const IterationDag dag = dag_of(random_job(random, overlap));
      MonteCarloRequest request{.stragglers = {}, .iterations = 40, .seed = 1};
      std::vector<double> factors;
      for (int rank = 0; rank < 4; ++rank) {
        factors.push_back(factor(random));
        request.stragglers.slow_ranks[rank] = factors.back();
      }
      const std::vector<Seconds> times = iteration_times(dag, 4, request);
      const Seconds period = period_of_ranks(dag, durations_of(dag, factors));
      EXPECT_NEAR(period.value(), times.back().value(), 1e-9) << name(overlap) << " " << i;
    }
  }
}

// Whoever joins can only be waited for.
TEST(HeterogeneousRanks, AreNeverFasterWithARankMore) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> factor(0.5, 3);
  for (int i = 0; i < 100; ++i) {
    const IterationDag dag = dag_of(random_job(random));
    std::vector<double> factors = {factor(random)};
    Seconds before = period_of_ranks(dag, durations_of(dag, factors));
    for (int rank = 0; rank < 3; ++rank) {
      factors.push_back(factor(random));
      const Seconds now = period_of_ranks(dag, durations_of(dag, factors));
      EXPECT_GE(now.value(), before.value() - 1e-12);
      before = now;
    }
  }
}

}  // namespace
}  // namespace paceline::simulator
