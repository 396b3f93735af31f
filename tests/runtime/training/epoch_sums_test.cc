#include "runtime/training/epoch_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace paceline::runtime {
namespace {

TEST(EpochSums, ComeBackFromACheckpointBitByBit) {
  const EpochSums sums{.loss = 1.0 / 3,
                       .correct = 9007199254740991,  // more digits than a float has
                       .labels = 1e300,
                       .exposed = Seconds{-0.0},
                       .input = Seconds{std::numeric_limits<double>::denorm_min()},
                       .time = Seconds{std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(sums_of(stored(sums)), sums);
  EXPECT_TRUE(std::signbit(sums_of(stored(sums)).exposed.value()));
}

}  // namespace
}  // namespace paceline::runtime
