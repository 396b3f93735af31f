// How late frames were.
#include "experiments/lab/switch/lateness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace paceline::lab {
namespace {

TEST(Lateness, IsZeroBeforeTheFirstFrame) {
  const Lateness none;
  EXPECT_EQ(none.count(), 0);
  EXPECT_EQ(none.mean(), 0.0);
  EXPECT_EQ(none.worst(), 0);
  EXPECT_EQ(none.quantile(0.99), 0);
}

TEST(Lateness, IsExactInMeanAndWorst) {
  Lateness lateness;
  for (const Nanoseconds late : {10, 20, 90}) lateness.add(late);
  lateness.add(-5);
  EXPECT_EQ(lateness.count(), 4);
  EXPECT_EQ(lateness.mean(), 30.0);
  EXPECT_EQ(lateness.worst(), 90);
  EXPECT_EQ(lateness.quantile(1.0), 90);
}

TEST(Lateness, HasQuantilesWithinAQuarter) {
  std::mt19937_64 random(20181028);
  std::lognormal_distribution<double> draw(10, 3);
  Lateness lateness;
  std::vector<Nanoseconds> all;
  for (int i = 0; i < 10'000; ++i) {
    all.push_back(std::llround(draw(random)));
    lateness.add(all.back());
  }
  std::sort(all.begin(), all.end());
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto at = static_cast<std::size_t>(std::ceil(share * 10'000.0)) - 1;
    const auto exact = static_cast<double>(all[at]);
    const auto found = static_cast<double>(lateness.quantile(share));
    EXPECT_GE(found, exact) << share;
    EXPECT_LE(found, 1.25 * exact) << share;
  }
}

TEST(Lateness, TakesAnyTime) {
  Lateness lateness;
  for (Nanoseconds late = 0; late < 100; ++late) {
    Lateness one;
    one.add(late);
    EXPECT_EQ(one.quantile(0.5), late);
  }
  lateness.add(std::numeric_limits<Nanoseconds>::max());
  EXPECT_EQ(lateness.quantile(0.5), std::numeric_limits<Nanoseconds>::max());
}

}  // namespace
}  // namespace paceline::lab
