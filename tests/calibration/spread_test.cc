// The spread of known samples, and that neither the unit of time nor the order of the samples changes it.
#include "calibration/fit/spread.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

namespace paceline::calibration {
namespace {

TEST(Spread, OfThreeRunsIsBySize) {
  const std::vector<Sample> samples = {{Bytes{2048}, Seconds{6}},
                                       {Bytes{1024}, Seconds{2}},
                                       {Bytes{2048}, Seconds{5}},
                                       {Bytes{2048}, Seconds{50}},
                                       {Bytes{1024}, Seconds{2}}};
  const std::vector<SizeSpread> spreads = spread_by_size(samples);
  ASSERT_EQ(spreads.size(), 2u);
  EXPECT_EQ(spreads[0].bytes, Bytes{1024});
  EXPECT_EQ(spreads[0].ratio(), 1);
  EXPECT_EQ(spreads[1].least, Seconds{5});
  EXPECT_EQ(spreads[1].median, Seconds{6});
  EXPECT_EQ(spreads[1].most, Seconds{50});
  EXPECT_EQ(spreads[1].samples, 3);
  EXPECT_EQ(spreads[1].ratio(), 10);
  const double squares = std::pow(std::log(5.0 / 6), 2) + std::pow(std::log(50.0 / 6), 2);
  EXPECT_NEAR(relative_spread(samples), std::sqrt(squares / 3), 1e-12);
}

TEST(Spread, OfOneSampleASizeIsNone) {
  EXPECT_EQ(relative_spread(std::vector<Sample>{{Bytes{1}, Seconds{1}}, {Bytes{2}, Seconds{3}}}),
            0);
  EXPECT_TRUE(spread_by_size({}).empty());
}

RC_GTEST_PROP(Spread, DependsNeitherOnTheUnitNorOnTheOrder, ()) {
  std::vector<Sample> samples;
  for (int i = *rc::gen::inRange(1, 40); i > 0; --i)
    samples.push_back({Bytes{static_cast<double>(*rc::gen::inRange(1, 5))},
                       Seconds{*rc::gen::inRange(1, 1000) * 1e-6}});
  const double spread = relative_spread(samples);
  RC_ASSERT(spread >= 0);
  std::reverse(samples.begin(), samples.end());
  for (Sample& sample : samples) sample.time = 4 * sample.time;
  RC_ASSERT(std::abs(relative_spread(samples) - spread) <= 1e-9 * (1 + spread));
}

}  // namespace
}  // namespace paceline::calibration
