#include "runtime/collective/sequential_executor.h"

#include <gtest/gtest.h>

#include "models/collective/algorithms.h"
#include "models/collective/combinators.h"
#include "tests/support/error_of.h"

namespace paceline::runtime {
namespace {

using Buffers = std::vector<std::vector<float>>;
using models::Schedule;

Buffers after(const Schedule& schedule, Buffers buffers) {
  execute_sequentially(schedule, buffers);
  return buffers;
}

TEST(SequentialExecutor, AddsOrReplacesAsTheMessageSays) {
  const models::PointToPoint message{.ranks = 2, .from = 0, .to = 1, .reduce = true};
  EXPECT_EQ(after(Schedule(message), {{1, 2}, {10, 20}}), (Buffers{{1, 2}, {11, 22}}));
  models::PointToPoint copy = message;
  copy.reduce = false;
  EXPECT_EQ(after(Schedule(copy), {{1, 2}, {10, 20}}), (Buffers{{1, 2}, {1, 2}}));
}

// Both ranks send what they held before the step: the sum is in each half once.
TEST(SequentialExecutor, ReadsBeforeItWrites) {
  EXPECT_EQ(after(Schedule(models::RecursiveHalving{2}), {{1, 2}, {10, 20}}),
            (Buffers{{11, 2}, {10, 22}}));
  // A chain of one segment in a step passes on what was there before: nobody sees rank 2's yet.
  EXPECT_EQ(after(Schedule(models::RingAllGather{3}), {{1, 0, 0}, {0, 2, 0}, {0, 0, 3}}),
            (Buffers{{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}));
}

// 2^24 + 1 rounds to 2^24 in float, so the order shows: ((2^24 + 1) + 1) + -2^24 is 0 and any order
// with both ones before it is 2.
TEST(SequentialExecutor, AddsInTheOrderOfTheSenders) {
  constexpr float big = 16'777'216.0F;
  const Schedule direct(models::ServerPush{4, 4});
  EXPECT_EQ(after(direct, {{big, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}, {-big, 0, 0, 0}})[0][0], 0);
  EXPECT_EQ(after(direct, {{1, 0, 0, 0}, {1, 0, 0, 0}, {big, 0, 0, 0}, {-big, 0, 0, 0}})[0][0], 2);
}

TEST(SequentialExecutor, LeavesRanksOutsideTheGroupsAlone) {
  const Schedule middle =
      models::within(4, models::Groups{.members = {{1, 2, 1}}, .count = 1, .stride = 0},
                     models::ring_all_reduce(2));
  EXPECT_EQ(after(middle, {{1}, {2}, {3}, {4}}), (Buffers{{1}, {5}, {5}, {4}}));
}

TEST(SequentialExecutor, LeavesOneRankAndEmptyBucketsAlone) {
  EXPECT_EQ(after(models::ring_all_reduce(1), {{1, 2}}), (Buffers{{1, 2}}));
  EXPECT_EQ(after(models::ring_all_reduce(3), {{}, {}, {}}), (Buffers{{}, {}, {}}));
}

TEST(SequentialExecutor, SaysWhatDoesNotFit) {
  const auto error = [](const Schedule& schedule, Buffers buffers) {
    return test::error_of([&] {
      execute_sequentially(schedule, buffers);
      return 0;
    });
  };
  EXPECT_EQ(error(models::ring_all_reduce(4), Buffers(3)),
            "3 buffers for 4 ranks; give one for each rank");
  EXPECT_EQ(error(models::ring_all_reduce(1), {}), "0 buffers for 1 ranks; give one for each rank");
  EXPECT_EQ(error(models::ring_all_reduce(3), {{1, 2}, {1, 2}, {1}}),
            "buffers of different sizes; give every rank as many elements");
}

}  // namespace
}  // namespace paceline::runtime
