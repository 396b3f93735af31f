#include "experiments/published/counts.h"

#include <gtest/gtest.h>

#include <bit>

#include "models/network/yaml.h"
#include "models/network/zoo.h"

namespace paceline::experiments {
namespace {

RowJob job(const SourceNetwork& network, const char* strategy, int ranks) {
  RowJob job;
  job.network = &network;
  job.options.strategy = &models::strategy(strategy);
  job.ranks = ranks;
  return job;
}

// Halving and doubling works on the largest power of two, and all others wait; binary blocks and a
// ring have no rank that does.
TEST(Counts, RanksBeyondAPowerOfTwoAreIdleInHalvingAndDoubling) {
  const SourceNetwork none;
  for (const int ranks : {5, 6, 7, 8, 9, 12, 31, 33, 600}) {
    const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
    EXPECT_EQ(count_of(Quantity::idle_ranks, job(none, "halving-doubling", ranks)), ranks - power);
    EXPECT_EQ(count_of(Quantity::idle_ranks, job(none, "ring", ranks)), 0) << ranks;
  }
  EXPECT_EQ(count_of(Quantity::idle_ranks, job(none, "binary-blocks", 600)), 0);
}

TEST(Counts, FlopsForEachParameterAreThoseOfTheNetwork) {
  const SourceNetwork network{models::work(models::zoo_network("resnet50")), {}};
  EXPECT_DOUBLE_EQ(count_of(Quantity::flops_per_parameter, job(network, "ring", 1)),
                   static_cast<double>(network.work.forward_flops()) / 25'557'032);
}

}  // namespace
}  // namespace paceline::experiments
