// The time of a training run from the times of its iterations, and what it uses up.
#include "simulator/iteration/time_to_train.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "models/cluster/catalog.h"

namespace paceline::simulator {
namespace {

using models::Length;
using models::Measure;
using models::Phase;
using models::TrainingRun;

Phase phase(double count, Measure measure) {
  Phase made;
  made.length = {count, measure};
  return made;
}

TrainingRun run_of(std::vector<Phase> phases, double dataset = 1000) {
  TrainingRun run;
  run.dataset = models::Dataset{"", dataset};
  run.phases = std::move(phases);
  return run;
}

// Iterations of 10 samples that take 2 s, or 1 s to 5 s.
const PhaseIteration slow{
    .iteration = {Seconds{2}, Seconds{1}, Seconds{5}, Provenance::predicted, ""},
    .samples = 10,
    .evaluation = Seconds{3}};
const PhaseIteration fast{
    .iteration = {Seconds{0.5}, Seconds{0.5}, Seconds{0.5}, Provenance::predicted, ""},
    .samples = 20,
    .evaluation = Seconds{1}};

TEST(TimeToTrain, IsSamplesOverThroughput) {
  const auto time = time_to_train(run_of({phase(3, Measure::epochs)}), std::vector{slow}, 8);
  EXPECT_DOUBLE_EQ(time.iterations, 300);
  EXPECT_DOUBLE_EQ(time.samples, 3000);
  EXPECT_DOUBLE_EQ(time.total.value.value(), 600);
  EXPECT_DOUBLE_EQ(time.total.low.value(), 300);
  EXPECT_DOUBLE_EQ(time.total.high.value(), 1500);
  EXPECT_EQ(training_time(3000, PerSecond{5}), time.training.value);
  EXPECT_EQ(training_throughput(3000, time.training.value), PerSecond{5});
}

TEST(TimeToTrain, GrowsAsTheEpochsDo) {
  const auto of = [](double epochs) {
    return time_to_train(run_of({phase(epochs, Measure::epochs)}), std::vector{slow}, 8).total;
  };
  for (const double factor : {0.1, 2.0, 7.5, 1000.0}) {
    EXPECT_DOUBLE_EQ(of(3 * factor).value.value(), factor * of(3).value.value());
    EXPECT_DOUBLE_EQ(of(3 * factor).high.value(), factor * of(3).high.value());
  }
}

TEST(TimeToTrain, IsTheSameInEpochsSamplesAndIterations) {
  const auto of = [](double count, Measure measure) {
    return time_to_train(run_of({phase(count, measure)}), std::vector{slow}, 8).total.value.value();
  };
  EXPECT_DOUBLE_EQ(of(3, Measure::epochs), of(3000, Measure::samples));
  EXPECT_DOUBLE_EQ(of(3, Measure::epochs), of(300, Measure::iterations));
}

TEST(TimeToTrain, OfPhasesAddsUpAtTheValueAndAtBothEnds) {
  TrainingRun run = run_of({phase(2, Measure::epochs), phase(1, Measure::epochs)});
  run.start_up = {Seconds{60}, Seconds{30}, Seconds{600}, Provenance::assumed, ""};
  const auto both = time_to_train(run, std::vector{slow, fast}, 8);
  const auto first = time_to_train(run_of({phase(2, Measure::epochs)}), std::vector{slow}, 8).total;
  const auto second =
      time_to_train(run_of({phase(1, Measure::epochs)}), std::vector{fast}, 8).total;
  EXPECT_DOUBLE_EQ(both.total.value.value(), 60 + (first.value + second.value).value());
  EXPECT_DOUBLE_EQ(both.total.low.value(), 30 + (first.low + second.low).value());
  EXPECT_DOUBLE_EQ(both.total.high.value(), 600 + (first.high + second.high).value());
  EXPECT_EQ(both.phases.size(), 2U);
}

TEST(TimeToTrain, OfAPhaseThatIsCutInTwoIsTheSameWithItsEvaluationsAndCheckpoints) {
  for (const double cut : {1.0, 2.5, 4.0, 9.999}) {
    TrainingRun whole = run_of({phase(10, Measure::epochs)});
    whole.evaluation = models::Evaluation{500, {2, Measure::epochs}, {}};
    whole.checkpoint = models::Checkpoint{
        Figure<Seconds>::exact(Seconds{7}, Provenance::datasheet, ""), {30, Measure::iterations}};
    TrainingRun halves = whole;
    halves.phases = {phase(cut, Measure::epochs), phase(10 - cut, Measure::epochs)};
    const auto once = time_to_train(whole, std::vector{slow}, 8);
    const auto twice = time_to_train(halves, std::vector{slow, slow}, 8);
    EXPECT_NEAR(once.total.value.value(), twice.total.value.value(), 1e-9) << cut;
    EXPECT_EQ(once.phases[0].evaluations, 5);
    EXPECT_EQ(once.phases[0].checkpoints, 33);
    EXPECT_EQ(twice.phases[0].evaluations + twice.phases[1].evaluations, 5) << cut;
    EXPECT_EQ(twice.phases[0].checkpoints + twice.phases[1].checkpoints, 33) << cut;
    EXPECT_DOUBLE_EQ(once.evaluation.value.value(), 5 * 3);
    EXPECT_DOUBLE_EQ(once.checkpoint.value.value(), 33 * 7);
  }
}

TEST(EvaluationShare, HasAPassOverAllSamplesAndNoEmptyOne) {
  for (const std::int64_t samples : {1, 7, 64, 65, 50'000, 1'000'000}) {
    for (const int ranks : {1, 3, 8, 1024}) {
      for (const int batch : {1, 5, 64}) {
        const EvaluationShare share = evaluation_share(samples, ranks, batch);
        EXPECT_LE(share.batch, batch);
        EXPECT_GE(share.batch, 1);
        const auto in_a_pass = static_cast<std::int64_t>(ranks) * share.batch;
        EXPECT_GE(share.passes * in_a_pass, samples);
        EXPECT_LT((share.passes - 1) * static_cast<std::int64_t>(ranks) * batch, samples);
      }
    }
  }
}

TEST(Expenses, AreHoursOfRanksAndPaidNodesWhole) {
  models::Cluster cluster = models::catalog_cluster("aws-p3-16xlarge");
  const auto hour = Figure<Seconds>::exact(Seconds{3600}, Provenance::predicted, "");
  const Expenses full = expenses(cluster, 16, hour);
  EXPECT_EQ(full.nodes, 2);
  EXPECT_DOUBLE_EQ(full.device_hours.value, 16);
  EXPECT_DOUBLE_EQ(full.cost->value.value(), 2 * 24.48);
  EXPECT_DOUBLE_EQ(full.cost->high.value(), 2 * 24.48);  // neither time nor price is uncertain
  const Expenses part = expenses(cluster, 9, hour);
  EXPECT_EQ(part.nodes, 2);
  EXPECT_DOUBLE_EQ(part.cost->value.value(), full.cost->value.value());
  EXPECT_LT(part.energy->value, full.energy->value);
  cluster.slots = {0, 8, 16, 24};
  EXPECT_EQ(nodes_of(cluster, 4), 4);
  EXPECT_EQ(nodes_of(cluster, 2), 2);
}

TEST(Expenses, EnergyIsRatedPowerTimesShares) {
  const models::Cluster cluster = models::catalog_cluster("aws-p3-16xlarge");
  const models::Power& power = cluster.power;
  const auto hour = Figure<Seconds>::exact(Seconds{3600}, Provenance::predicted, "");
  const Figure<KilowattHours> energy = *expenses(cluster, 8, hour).energy;
  EXPECT_DOUBLE_EQ(energy.value.value(), 8 * 0.3 * power.training_share.value *
                                             (1 + power.host_share.value) * power.pue.value);
  // The factors are not all at their ends at once.
  EXPECT_LT(energy.high.value(),
            8 * 0.3 * power.training_share.high * (1 + power.host_share.high) * power.pue.high);
  EXPECT_GT(energy.high.value(), energy.value.value() * power.pue.high / power.pue.value);
  EXPECT_LT(energy.low.value(), energy.value.value() * power.pue.low / power.pue.value);
}

TEST(Expenses, KnowThePowerOfANodeAndWhatNobodyStates) {
  models::Cluster cluster = models::catalog_cluster("h200-ndr");
  const auto hour = Figure<Seconds>::exact(Seconds{3600}, Provenance::predicted, "");
  EXPECT_FALSE(expenses(cluster, 8, hour).cost);
  cluster.device.power.reset();
  EXPECT_FALSE(expenses(cluster, 8, hour).energy);
  cluster.power.node = Figure<Watts>::exact(Watts{8000}, Provenance::measured, "");
  cluster.power.pue = Figure<double>::exact(1, Provenance::measured, "");
  EXPECT_DOUBLE_EQ(expenses(cluster, 12, hour).energy->value.value(), 16);
  EXPECT_DOUBLE_EQ(expenses(cluster, 12, hour).energy->high.value(), 16);
}

TEST(Expenses, IntervalsOfTimeAndPriceAddAsSquaresOfLogarithms) {
  models::Cluster cluster = models::catalog_cluster("aws-p3-16xlarge");
  cluster.price =
      Figure<UsdPerHour>{UsdPerHour{10}, UsdPerHour{5}, UsdPerHour{20}, Provenance::assumed, ""};
  const Figure<Seconds> time{Seconds{3600}, Seconds{1800}, Seconds{7200}, Provenance::predicted,
                             ""};
  const Figure<Usd> cost = *expenses(cluster, 8, time).cost;
  EXPECT_NEAR(cost.high.value(), 10 * std::pow(2, std::sqrt(2)), 1e-9);
  EXPECT_NEAR(cost.low.value(), 10 / std::pow(2, std::sqrt(2)), 1e-9);
}

}  // namespace
}  // namespace paceline::simulator
