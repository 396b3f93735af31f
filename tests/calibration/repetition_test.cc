#include "calibration/measure/repetition.h"

#include <gtest/gtest.h>

#include <random>

namespace paceline::calibration {
namespace {

TEST(Repetition, EndsAtTheLeastWhereSamplesAgree) {
  int calls = 0;
  const std::vector<double> samples = repeat({.least = 7, .time = Seconds{100}}, [&] {
    ++calls;
    return std::vector<double>{2.0};
  });
  EXPECT_EQ(calls, 7);
  EXPECT_EQ(samples, std::vector<double>(7, 2.0));
}

// More noise takes more samples, until the interval is narrow enough or there are the most.
TEST(Repetition, GoesOnUntilTheIntervalIsNarrow) {
  std::size_t before = 0;
  for (const double noise : {0.0, 0.02, 0.05, 0.1}) {
    std::mt19937_64 random(3);
    std::uniform_real_distribution<> factor(1 - noise, 1 + noise);
    const Repetition how{.most = 2000, .narrow = 0.01, .time = Seconds{100}};
    const std::vector<double> samples =
        repeat(how, [&] { return std::vector<double>{factor(random)}; });
    const Interval interval = median_interval(samples);
    EXPECT_LE(interval.high - interval.low, 2 * how.narrow * median(samples));
    EXPECT_GE(samples.size(), before);
    before = samples.size();
  }
  EXPECT_GT(before, 20U);
}

TEST(Repetition, EndsWithTheMostOrTheTimeOrWhenNothingComes) {
  int calls = 0;
  const auto noisy = [&] { return std::vector<double>{++calls % 2 == 0 ? 1.0 : 3.0}; };
  EXPECT_EQ(repeat({.most = 30, .time = Seconds{100}}, noisy).size(), 30U);
  EXPECT_EQ(repeat({.least = 6, .most = 1000, .time = Seconds{0}}, noisy).size(), 6U);
  EXPECT_EQ(repeat({.time = Seconds{100}},
                   [&, left = 3]() mutable {
                     return left-- > 0 ? std::vector<double>{1.0} : std::vector<double>{};
                   })
                .size(),
            3U);
}

}  // namespace
}  // namespace paceline::calibration
