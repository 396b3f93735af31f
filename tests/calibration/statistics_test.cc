// Intervals hold the median as often as they claim, and are those of the study's report.
#include "calibration/fit/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "models/base/units.h"
#include "tests/support/source_tree.h"

namespace paceline::calibration {
namespace {

// The share of intervals of `count` samples that hold `median`. The trials are enough for it to vary by 0.5 %.
template <class Draw>
double coverage(int count, double median, Draw draw) {
  constexpr int trials = 4000;
  int held = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> samples(static_cast<std::size_t>(count));
    for (double& sample : samples) sample = draw();
    const Interval interval = median_interval(std::move(samples));
    held += interval.low <= median && median <= interval.high;
  }
  return static_cast<double>(held) / trials;
}

TEST(Statistics, NineOfTenIntervalsHoldTheMedianOfNormalSamples) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(100, 5);
  for (const int count : {2, 3, 4, 5, 6, 7, 15, 20, 200})
    EXPECT_NEAR(coverage(count, 100, [&] { return normal(random); }), 0.9, 0.02) << count;
}

TEST(Statistics, NineOfTenIntervalsHoldTheMedianOfSkewedSamples) {
  std::mt19937_64 random(2);
  std::exponential_distribution<double> exponential(1);
  // Three and four samples are stretched as normal ones need it.
  for (const int count : {3, 4})
    EXPECT_NEAR(coverage(count, std::log(2), [&] { return exponential(random); }), 0.9, 0.05);
  for (const int count : {5, 7, 15, 50})
    EXPECT_NEAR(coverage(count, std::log(2), [&] { return exponential(random); }), 0.9, 0.02);
}

TEST(Statistics, AnIntervalNarrowsWithTheRootOfTheSamples) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  const auto width = [&](std::size_t count) {
    double sum = 0;
    for (int trial = 0; trial < 300; ++trial) {
      std::vector<double> samples(count);
      for (double& sample : samples) sample = normal(random);
      const Interval interval = median_interval(std::move(samples));
      sum += interval.high - interval.low;
    }
    return sum;
  };
  EXPECT_NEAR(width(50) / width(800), 4, 0.3);
}

TEST(Statistics, AnIntervalLiesBetweenOrderStatistics) {
  // Seven samples: the outermost two hold the median with 126 / 128, the next ones with 112 / 128.
  const double excess = (126.0 / 128 - 0.9) / (14.0 / 128);
  const double inwards = 6 * excess / (1 + 5 * excess);
  const Interval interval = median_interval({40, 1, 10, 3, 20, 2, 5});
  EXPECT_NEAR(interval.low, 1 + inwards, 1e-12);
  EXPECT_NEAR(interval.high, 40 - 20 * inwards, 1e-12);
}

TEST(Statistics, OneSampleTellsNothingOfItsError) {
  const Interval interval = median_interval({2.5});
  EXPECT_EQ(interval.low, 2.5);
  EXPECT_EQ(interval.high, 2.5);
}

TEST(Statistics, AnIntervalOfWhatIsNeverNegativeIsNotEither) {
  EXPECT_EQ(median_interval({1, 2, 4}).low, 0);
  EXPECT_LT(median_interval({-0.1, 2, 4}).low, -1);
}

TEST(Statistics, AFigureIsTheMedianWithItsInterval) {
  const Figure<Seconds> figure = median_figure(
      std::vector<Seconds>{Seconds{4}, Seconds{3}, Seconds{5}}, Provenance::measured, "x");
  EXPECT_EQ(figure.value, Seconds{4});
  EXPECT_NEAR(figure.low.value(), 4 - 2.262, 1e-12);
  EXPECT_NEAR(figure.high.value(), 4 + 2.262, 1e-12);
  EXPECT_EQ(figure.source, "x");
}

TEST(Statistics, ABootstrapsIntervalHoldsWhatIsStated) {
  std::vector<double> draws;
  for (int i = 100; i >= 0; --i) draws.push_back(i);
  EXPECT_NEAR(bootstrap_interval(draws, 50).low, 5, 1e-12);
  EXPECT_NEAR(bootstrap_interval(draws, 50).high, 95, 1e-12);
  EXPECT_EQ(bootstrap_interval(draws, 2).low, 2);
  std::vector<double> none;
  EXPECT_EQ(bootstrap_interval(none, 3).high, 3);
}

TEST(Statistics, LongAndShortIterationsInTurnAreTimedByTwo) {
  EXPECT_EQ(typical_iteration(std::vector<double>{1, 2, 1, 2, 1}), 1.5);
  EXPECT_EQ(typical_iteration(std::vector<double>{3}), 3);
}

// study_test.py holds experiments/lab/study/figures.py to the same file, which that wrote.
TEST(Statistics, TheyAreThoseOfTheStudy) {
  std::ifstream file(test::golden_path("statistics.json"));
  const auto cases = nlohmann::json::parse(file)["cases"];
  ASSERT_GT(cases.size(), 8U);
  for (const auto& entry : cases) {
    auto samples = entry["samples"].get<std::vector<double>>();
    const auto expect = [&](const char* what, double value) {
      const double expected = entry[what].get<double>();
      EXPECT_NEAR(value, expected, 1e-12 * (1 + std::abs(expected))) << what << entry["samples"];
    };
    expect("median", median(samples));
    expect("low", median_interval(samples).low);
    expect("high", median_interval(samples).high);
    expect("typical_iteration", typical_iteration(samples));
    std::sort(samples.begin(), samples.end());
    expect("quantile_5", quantile(samples, 0.05));
    expect("quantile_95", quantile(samples, 0.95));
  }
}

}  // namespace
}  // namespace paceline::calibration
