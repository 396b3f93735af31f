// Iterations with stragglers, held against closed forms, quadrature, the iteration without
// stragglers, and a slow simulation of every task on every rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "models/collective/algorithms.h"
#include "simulator/engine/flow_engine.h"
#include "simulator/engine/step_engine.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/straggler/compute_factors.h"
#include "simulator/straggler/monte_carlo.h"
#include "simulator/straggler/summary.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

using models::ComputeSpread;
using models::Overlap;
using models::SpreadKind;
using models::Stragglers;
using test::chain_network;
using test::random_job;
using test::RandomJob;

constexpr std::array every_overlap = {Overlap::wait_free, Overlap::none, Overlap::double_buffered,
                                      Overlap::priority};

ComputeSpread spread(SpreadKind kind, double parameter) {
  return {.kind = kind, .parameter = parameter, .samples = {}, .text = {}};
}

// The inverse of a distribution function at the middles of `parts` equal parts.
ComputeSpread empirical(const std::function<double(double)>& inverse, int parts = 100000) {
  ComputeSpread drawn = spread(SpreadKind::empirical, 0);
  for (int i = 0; i < parts; ++i) drawn.samples.push_back(inverse((i + 0.5) / parts));
  const double mean = std::accumulate(drawn.samples.begin(), drawn.samples.end(), 0.0) / parts;
  for (double& sample : drawn.samples) sample /= mean;
  return drawn;
}

// One layer of 1 s, and an all-reduce and an update of no time: an iteration takes as long as the
// order statistic of the factors.
IterationDag one_second() {
  const models::NetworkWork network = chain_network({10});
  const models::Plan plan =
      models::make_plan(models::strategy("ring"), network.gradients, 2, models::WireType::fp32, {});
  const ComputeTimes compute{
      .layers = {{Seconds{0.25}, Seconds{0.75}}}, .update = {}, .provenance = {}, .source = {}};
  return {network, plan, compute, std::vector<BucketTimes>(1), {}};
}

IterationDag dag_of(const RandomJob& job, const InputTimes& input = {}) {
  return {job.network, job.plan, job.compute, job.buckets, input};
}

// A first layer without gradient, whose backward pass comes after the last gradient.
void add_front_layer(RandomJob& job) {
  job.network.layers.insert(job.network.layers.begin(), models::LayerWork{});
  for (auto& gradient : job.network.gradients) ++gradient.layer;
  job.compute.layers.insert(job.compute.layers.begin(), {Seconds{0.02}, Seconds{0.3}});
}

IterationDag with_compute_times(const IterationDag& dag, double factor) {
  std::vector<Seconds> durations;
  for (const Task& task : dag.tasks())
    durations.push_back((task.resource == Resource::compute ? factor : 1) * task.duration);
  IterationDag scaled = dag;
  scaled.set_durations(durations);
  return scaled;
}

IterationSummary simulated(const ComputeSpread& spread, int ranks, int backup,
                           int iterations = 20000) {
  return summary(iteration_times(one_second(), ranks,
                                 {.stragglers = {spread, {}, backup}, .iterations = iterations}));
}

// Of p values with distribution function F, which are not negative, the n-th smallest has mean
//   integral from 0 of P(fewer than n of p are at most x) dx.
double mean_order_statistic(const std::function<double(double)>& distribution, int p, int n,
                            double most) {
  constexpr int parts = 20000;
  double sum = 0;
  for (int i = 0; i < parts; ++i) {
    const double f = distribution(most * (i + 0.5) / parts);
    double fewer = 0;
    for (int k = 0; k < n; ++k) {
      const double log_choose = std::lgamma(p + 1) - std::lgamma(k + 1) - std::lgamma(p - k + 1);
      if (f <= 0) {
        fewer += k == 0 ? 1 : 0;
      } else if (f < 1) {
        fewer += std::exp(log_choose + k * std::log(f) + (p - k) * std::log1p(-f));
      }
    }
    sum += fewer;
  }
  return sum * most / parts;
}

double normal_distribution(double z) {
  return std::erfc(-z / std::sqrt(2.0)) / 2;
}

TEST(ComputeFactors, HaveMeanOneAndComeAgainWithTheirSeed) {
  for (const ComputeSpread& s : {spread(SpreadKind::constant, 0), spread(SpreadKind::normal, 0.1),
                                 spread(SpreadKind::normal, 1), spread(SpreadKind::log_normal, 0.5),
                                 empirical([](double u) { return -std::log(1 - u); })}) {
    const Stragglers stragglers{s, {{2, 3.0}}, 0};
    ComputeFactors factors(stragglers, 4, 9);
    ComputeFactors same(stragglers, 4, 9);
    ComputeFactors other(stragglers, 4, 10);
    constexpr int count = 200000;
    std::vector<double> sums(4);
    double squares = 0;
    bool differs = false;
    for (int i = 0; i < count; ++i) {
      const std::span<const double> drawn = factors.next();
      const std::span<const double> again = same.next();
      differs = differs || other.next()[0] != drawn[0];
      for (std::size_t r = 0; r < 4; ++r) {
        ASSERT_GT(drawn[r], 0);
        ASSERT_EQ(drawn[r], again[r]);
        sums[r] += drawn[r];
      }
      squares += drawn[0] * drawn[0];
    }
    const double deviation = std::sqrt(squares / count - std::pow(sums[0] / count, 2));
    const double error = 4.5 * deviation / std::sqrt(count) + 1e-12;
    for (const std::size_t r : {0, 1, 3}) EXPECT_NEAR(sums[r] / count, 1, error);
    EXPECT_NEAR(sums[2] / count, 3, 3 * error);
    EXPECT_EQ(differs, s.kind != SpreadKind::constant);
  }
}

// Of p uniform numbers in (0, 2), the n-th smallest is 2n/(p+1) in the mean (David and Nagaraja).
TEST(MonteCarlo, UniformOrderStatistics) {
  const ComputeSpread uniform = empirical([](double u) { return u; });
  for (const int p : {1, 2, 7, 100}) {
    for (const int backup : {0, 1, 4}) {
      if (backup >= p) continue;
      const IterationSummary s = simulated(uniform, p, backup);
      EXPECT_NEAR(s.mean.value(), 2.0 * (p - backup) / (p + 1), 4 * s.standard_error.value())
          << p << " ranks, " << backup << " backup";
    }
  }
}

// Of p exponential numbers of mean 1, the n-th smallest is H(p) - H(p-n) in the mean (Renyi).
TEST(MonteCarlo, ExponentialOrderStatistics) {
  const ComputeSpread exponential = empirical([](double u) { return -std::log(1 - u); });
  const auto harmonic = [](int n) {
    double sum = 0;
    for (int i = 1; i <= n; ++i) sum += 1.0 / i;
    return sum;
  };
  for (const int p : {1, 4, 30}) {
    for (const int backup : {0, 2}) {
      if (backup >= p) continue;
      const IterationSummary s = simulated(exponential, p, backup);
      EXPECT_NEAR(s.mean.value(), harmonic(p) - harmonic(backup), 4 * s.standard_error.value());
    }
  }
}

TEST(MonteCarlo, NormalAndLogNormalOrderStatisticsEqualQuadrature) {
  const auto check = [](const ComputeSpread& s, const std::function<double(double)>& distribution,
                        double most) {
    for (const auto& [p, backup] : {std::pair{1, 0}, {2, 0}, {16, 0}, {100, 0}, {100, 4}}) {
      const IterationSummary simulation = simulated(s, p, backup);
      EXPECT_NEAR(simulation.mean.value(), mean_order_statistic(distribution, p, p - backup, most),
                  4 * simulation.standard_error.value())
          << p << " ranks, " << backup << " backup, parameter " << s.parameter;
    }
  };
  for (const double sigma : {0.05, 0.3, 1.0}) {
    check(
        spread(SpreadKind::log_normal, sigma),
        [=](double x) { return normal_distribution((std::log(x) + sigma * sigma / 2) / sigma); },
        60);
  }
  for (const double deviation : {0.05, 0.3, 1.0}) {
    const double z = 1 / deviation;
    const double share = normal_distribution(z);
    const double mean = 1 + deviation * std::exp(-z * z / 2) / std::sqrt(2 * std::acos(-1)) / share;
    check(
        spread(SpreadKind::normal, deviation),
        [=](double x) {
          return (normal_distribution((x * mean - 1) / deviation) - normal_distribution(-z)) /
                 share;
        },
        8);
  }
}

TEST(MonteCarlo, StandardErrorShrinksWithTheRootOfTheIterations) {
  const ComputeSpread s = spread(SpreadKind::log_normal, 0.2);
  const double few = simulated(s, 16, 0, 1000).standard_error.value();
  const double many = simulated(s, 16, 0, 64000).standard_error.value();
  EXPECT_NEAR(few / many, 8, 8 * 4 * 0.11 * std::sqrt(2));
  EXPECT_GT(few, 4 * many);
}

TEST(MonteCarlo, MoreBackupIsNeverSlower) {
  for (const Overlap overlap : {Overlap::wait_free, Overlap::none}) {
    std::mt19937 random(3);
    for (int trial = 0; trial < 10; ++trial) {
      const IterationDag dag = dag_of(random_job(random, overlap));
      double before = std::numeric_limits<double>::infinity();
      for (int backup = 0; backup < 8; ++backup) {
        const IterationSummary s = summary(iteration_times(
            dag, 8, {.stragglers = {spread(SpreadKind::log_normal, 0.3), {}, backup}}));
        EXPECT_LE(s.mean.value(), before * (1 + 1e-9));
        before = s.mean.value();
      }
    }
  }
}

// The same as without stragglers, digit for digit except for rounding.
TEST(MonteCarlo, EqualRanksTakeTheSteadyPeriod) {
  std::mt19937 random(20160404);
  for (const Overlap overlap : every_overlap) {
    for (int trial = 0; trial < 40; ++trial) {
      const InputTimes input =
          trial % 2 == 0 ? InputTimes{} : InputTimes{Seconds{0.05}, Seconds{0.1}, Seconds{0.001}};
      const IterationDag dag = dag_of(random_job(random, overlap), input);
      const SteadyIteration steady = steady_state(dag);
      ASSERT_TRUE(steady.converged);
      for (const int backup : {0, 2}) {
        const IterationSummary s = summary(iteration_times(
            dag, 5,
            {.stragglers = {spread(SpreadKind::constant, 0), {}, backup}, .iterations = 100}));
        EXPECT_NEAR(s.mean.value(), steady.period.value(), 1e-12) << name(overlap);
        EXPECT_NEAR(s.p99.value.value(), steady.period.value(), 1e-12);
        EXPECT_EQ(s.standard_error, Seconds{0});
      }
    }
  }
}

TEST(MonteCarlo, ASlowRankSlowsAllByItsFactorUnlessItIsBackup) {
  std::mt19937 random(9);
  for (const Overlap overlap : every_overlap) {
    for (int trial = 0; trial < 20; ++trial) {
      const IterationDag dag = dag_of(random_job(random, overlap));
      const auto period = [&](const std::map<int, double>& slow, int backup) {
        return summary(
                   iteration_times(dag, 6,
                                   {.stragglers = {spread(SpreadKind::constant, 0), slow, backup},
                                    .iterations = 50}))
            .mean.value();
      };
      const auto expected = [&](double factor) {
        return steady_state(with_compute_times(dag, factor)).period.value();
      };
      EXPECT_NEAR(period({{2, 1.7}}, 0), expected(1.7), 1e-9) << name(overlap);
      EXPECT_NEAR(period({{2, 1.7}, {5, 3}}, 0), expected(3), 1e-9) << name(overlap);
      EXPECT_NEAR(period({{2, 1.7}, {5, 3}}, 1), expected(1.7), 1e-9) << name(overlap);
      EXPECT_NEAR(period({{2, 1.7}, {5, 3}}, 2), expected(1), 1e-9) << name(overlap);
    }
  }
}

// Communication is slower than compute by a millionth: from rest it would take a million iterations
// to have compute wait for it.
TEST(MonteCarlo, StartsInTheSteadyState) {
  RandomJob job;
  job.network = chain_network({10, 10});
  job.compute = {.layers = {{Seconds{1}, Seconds{4}}, {Seconds{2}, Seconds{3}}},
                 .update = Seconds{0.5},
                 .provenance = {},
                 .source = {}};
  job.plan = models::make_plan(models::strategy("ring"), job.network.gradients, 2,
                               models::WireType::fp32, {});
  job.plan.overlap = Overlap::double_buffered;
  job.buckets.assign(2, BucketTimes{{}, {}, Seconds{2 * 5.250005}, {}});
  const IterationSummary s = summary(iteration_times(
      dag_of(job), 4,
      {.stragglers = {spread(SpreadKind::constant, 0), {{1, 2.0}}, 0}, .iterations = 50}));
  EXPECT_NEAR(s.mean.value(), 2 * 10.50001, 1e-9);
}

// Every task on every rank, one after the other, as monte_carlo.h says.
class EveryRank {
 public:
  EveryRank(const IterationDag& dag, int ranks, int backup)
      : dag_(dag), ranks_(ranks), backup_(backup) {
    for (std::size_t t = 0; t < dag.tasks().size(); ++t) {
      const Task& task = dag.tasks()[t];
      if (task.kind == TaskKind::forward || task.kind == TaskKind::backward) {
        if (task.kind == TaskKind::backward) last_backward_ = static_cast<int>(t);
      }
      if (task.resource != Resource::communication) continue;
      for (std::size_t i = dag.first_into()[t]; i < dag.first_into()[t + 1]; ++i) {
        const Dependency& d = dag.into()[i];
        if (dag.tasks()[at(d.from)].kind != TaskKind::backward) continue;
        takes_gradients_.push_back(static_cast<int>(t));
        last_gradient_ = std::max(last_gradient_, d.from);
      }
    }
  }

  double update_after(std::vector<double> factors) {
    factors_.push_back(std::move(factors));
    ++iterations_;
    double last = -1;
    for (int task = 0; task < static_cast<int>(dag_.tasks().size()); ++task) {
      if (dag_.tasks()[at(task)].kind == TaskKind::update)
        last = std::max(last, first_ranks(iterations_ - 1, task));
    }
    return last;
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  // When the first p - b ranks are done.
  double first_ranks(int iteration, int task) {
    std::vector<double> done;
    for (int rank = 0; rank < ranks_; ++rank) done.push_back(end(iteration, task, rank));
    std::sort(done.begin(), done.end());
    return done[at(ranks_ - backup_ - 1)];
  }

  bool is_common(int task) const {
    return dag_.tasks()[at(task)].resource == Resource::communication;
  }

  double begin(int iteration, int task, int rank) {
    double begin = 0;
    for (std::size_t i = dag_.first_into()[at(task)]; i < dag_.first_into()[at(task) + 1]; ++i) {
      const Dependency& d = dag_.into()[i];
      if (d.lag > iteration) continue;
      begin = std::max(begin, is_common(task) && !is_common(d.from)
                                  ? first_ranks(iteration - d.lag, d.from)
                                  : left(iteration - d.lag, d.from, rank));
    }
    return begin;
  }

  double end(int iteration, int task, int rank) {
    if (is_common(task)) rank = 0;
    const auto [known, is_new] = ends_.try_emplace({iteration, task, rank});
    if (!is_new) return known->second;
    const bool is_slowed = dag_.tasks()[at(task)].resource == Resource::compute;
    const double factor = is_slowed ? factors_[at(iteration)][at(rank)] : 1;
    const double end =
        begin(iteration, task, rank) + factor * dag_.tasks()[at(task)].duration.value();
    ends_[{iteration, task, rank}] = end;
    return end;
  }

  // When a rank goes on from a task: from backward, early if it is late.
  double left(int iteration, int task, int rank) {
    const double own = end(iteration, task, rank);
    if (backup_ == 0 || task != last_backward_) return own;
    double last = 0;
    for (const int taking : takes_gradients_) last = std::max(last, begin(iteration, taking, 0));
    return end(iteration, last_gradient_, rank) > last ? last : own;
  }

  const IterationDag& dag_;
  int ranks_;
  int backup_;
  int last_backward_ = -1;
  int last_gradient_ = -1;
  int iterations_ = 0;
  std::vector<int> takes_gradients_;
  std::vector<std::vector<double>> factors_;
  std::map<std::tuple<int, int, int>, double> ends_;
};

// Both start differently, but forget it: every iteration with a wait of all for all makes it so.
TEST(MonteCarlo, EqualsEveryTaskOnEveryRank) {
  std::mt19937 random(2016);
  for (const Overlap overlap : every_overlap) {
    for (const int backup : {0, 1, 3}) {
      for (int trial = 0; trial < 6; ++trial) {
        const InputTimes input =
            trial % 2 == 0 ? InputTimes{} : InputTimes{Seconds{0.05}, Seconds{0.2}, Seconds{0.01}};
        RandomJob job = random_job(random, overlap);
        if (trial >= 3) add_front_layer(job);
        const IterationDag dag = dag_of(job, input);
        constexpr int ranks = 5;
        const MonteCarloRequest request{
            .stragglers = {spread(SpreadKind::log_normal, 0.4), {{1, 1.5}}, backup},
            .iterations = 60};
        const std::vector<Seconds> ours = iteration_times(dag, ranks, request);
        EveryRank reference(dag, ranks, backup);
        ComputeFactors factors(request.stragglers, ranks, request.seed);
        std::vector<double> updates;
        for (int i = 0; i < 86; ++i) {
          const std::span<const double> drawn = factors.next();
          updates.push_back(reference.update_after({drawn.begin(), drawn.end()}));
        }
        for (std::size_t i = 30; i < 60; ++i) {
          EXPECT_NEAR(ours[i].value(), updates[i + 26] - updates[i + 25], 1e-9)
              << name(overlap) << ", " << backup << " backup, iteration " << i;
        }
      }
    }
  }
}

// Double buffering lets ranks run ahead of each other, so that not every iteration takes the
// slowest rank's time.
TEST(MonteCarlo, DoubleBufferingHidesSomeOfTheSpread) {
  std::mt19937 random(1);
  RandomJob job = random_job(random, Overlap::wait_free);
  for (BucketTimes& bucket : job.buckets) bucket = {};
  const MonteCarloRequest request{.stragglers = {spread(SpreadKind::log_normal, 0.3), {}, 0}};
  const IterationSummary waiting = summary(iteration_times(dag_of(job), 16, request));
  job.plan.overlap = Overlap::double_buffered;
  const IterationSummary buffered = summary(iteration_times(dag_of(job), 16, request));
  EXPECT_LT(buffered.mean.value(), 0.95 * waiting.mean.value());
  EXPECT_GT(buffered.mean.value(), job.compute.total().value());
}

TEST(IterationSummary, QuantilesByHand) {
  std::vector<Seconds> times;
  for (int i = 100; i >= 1; --i) times.emplace_back(i);
  const IterationSummary s = summary(times);
  EXPECT_EQ(s.mean, Seconds{50.5});
  EXPECT_EQ(s.p50.value, Seconds{50});
  EXPECT_EQ(s.p99.value, Seconds{99});
  EXPECT_EQ(s.p50.low, Seconds{41});   // 50 - 1.645 x 5
  EXPECT_EQ(s.p50.high, Seconds{60});  // 50 + 1.645 x 5, and one more
  EXPECT_EQ(s.p99.low, Seconds{97});
  EXPECT_EQ(s.p99.high, Seconds{100});
  EXPECT_EQ(s.iterations, 100);
}

// x(i) = 0.9 x(i-1) + e(i): the variance of the mean of N is 1 / (0.1^2 N), 19 times what it would
// be of independent values.
TEST(IterationSummary, StandardErrorKnowsOfCorrelation) {
  Random random(4);
  std::vector<Seconds> times;
  double x = 0;
  for (int i = 0; i < 100000; ++i) {
    x = 0.9 * x + random.normal();
    times.emplace_back(100 + x);
  }
  const double truth = 10 / std::sqrt(100000.0);
  EXPECT_NEAR(summary(times).standard_error.value(), truth, 3 * 0.11 * truth);
}

// A ring in which one of the NICs has a share of its bandwidth goes, step by step, as slowly as one
// in which all do.
TEST(SlowNode, SlowsARingByItsShareOnBothEngines) {
  for (const double share : {0.9, 0.5, 0.125}) {
    for (const double latency : {0.0, 5e-6}) {
      CommunicationCost cost;
      cost.intra = {Seconds{0}, SecondsPerByte{0}};
      cost.nic = {Seconds{latency}, SecondsPerByte{1e-10}};
      cost.gamma = SecondsPerByte{latency * 1e-6};
      CommunicationCost all_slow = cost;
      all_slow.nic.beta = SecondsPerByte{1e-10 / share};
      CommunicationCost one_slow = cost;
      one_slow.slow_nodes = {{3, share}};
      const models::Schedule ring = models::ring_all_reduce(8);
      const Bytes bytes{64e6};
      const double expected = StepEngine(ring, all_slow).time(bytes).value();
      EXPECT_NEAR(StepEngine(ring, one_slow).time(bytes).value(), expected, 1e-9 * expected);
      FlowEngine flow({&ring, 1}, one_slow);
      EXPECT_NEAR(flow.completion(0, bytes).last().value(), expected, 1e-9 * expected);
      if (latency == 0) {
        EXPECT_NEAR(expected, StepEngine(ring, cost).time(bytes).value() / share, 1e-9 * expected);
      }
    }
  }
}

}  // namespace
}  // namespace paceline::simulator
