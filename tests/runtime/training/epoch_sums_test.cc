#include "runtime/training/epoch_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

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

TEST(EpochSums, AreSharedOutToOtherRanks) {
  const EpochSums a{
      .loss = 3, .correct = 4, .labels = 8, .exposed = {}, .input = {}, .time = Seconds{2}};
  const EpochSums b{
      .loss = 5, .correct = 2, .labels = 8, .exposed = {}, .input = {}, .time = Seconds{4}};
  const EpochSums made = shared_out(std::vector{a, b}, 4);
  EXPECT_EQ(
      made,
      (EpochSums{
          .loss = 2, .correct = 1.5, .labels = 4, .exposed = {}, .input = {}, .time = Seconds{3}}));
}

}  // namespace
}  // namespace paceline::runtime
