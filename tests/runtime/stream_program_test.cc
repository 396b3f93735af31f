// Programs of streams: on a machine that runs them in any allowed order, every schedule of the
// catalogue is the sum, with the executor's bits, whenever sends complete; every wait is needed, and
// no wait is missing.
#include "runtime/collective/stream_program.h"

#include <gtest/gtest.h>

#include "tests/support/collective_runs.h"
#include "tests/support/executor_results.h"
#include "tests/support/stream_machine.h"

namespace paceline::runtime {
namespace {

using test::Bucket;
using test::Case;

ArrayView view_of_bytes(Bucket& bucket, NumberType type) {
  return {bucket.data(), type, bucket.size() / bytes_of(type), MemoryKind::host};
}

// What the ranks' programs leave in their buckets, or nothing if they do not come to their ends.
std::vector<Bucket> results(const Case& c, std::int64_t message_elements, test::Sends sends,
                            std::uint64_t seed) {
  const int p = c.schedule.ranks();
  std::vector<test::StreamMachine::Rank> ranks;
  std::vector<Bucket> buckets(static_cast<std::size_t>(p));
  std::vector<Bucket> scratch(buckets.size());
  std::vector<Bucket> wide(buckets.size());
  for (int rank = 0; rank < p; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    StreamProgram program =
        compile_for_streams(c.schedule, rank, c.elements, c.type, message_elements);
    buckets[r] = test::bucket_of(c, rank);
    // Poisoned: every number is NaN.
    scratch[r].assign(static_cast<std::size_t>(program.scratch_elements) * bytes_of(c.type),
                      std::byte{0xff});
    wide[r].assign(static_cast<std::size_t>(program.wide_elements) * sizeof(float),
                   std::byte{0xff});
    ranks.push_back({std::move(program),
                     {.bucket = view_of_bytes(buckets[r], c.type),
                      .scratch = view_of_bytes(scratch[r], c.type),
                      .wide = view_of_bytes(wide[r], NumberType::fp32)}});
  }
  test::StreamMachine machine(std::move(ranks), sends, seed);
  if (!machine.run()) return {};
  return buckets;
}

constexpr std::int64_t one_message = std::int64_t{1} << 40;

class StreamProgramOf : public testing::TestWithParam<int> {};

TEST_P(StreamProgramOf, EveryScheduleLeavesTheExecutorsBits) {
  const std::vector<Case> cases = test::cases_of_catalogue(GetParam());
  const std::vector<std::vector<Bucket>> expected = test::executor_results(cases);
  std::uint64_t seed = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    for (const test::Sends sends : {test::Sends::rendezvous, test::Sends::eager}) {
      const std::int64_t message = std::array{
          one_message, std::int64_t{64}, std::int64_t{5}}[static_cast<std::size_t>(++seed) % 3];
      const std::vector<Bucket> buckets =
          results(c, c.elements == 1000 && message == 5 ? 64 : message, sends, seed);
      ASSERT_FALSE(buckets.empty()) << test::described(c) << " is stuck";
      ASSERT_EQ(buckets, expected[i]) << test::described(c);
    }
  }
}

TEST_P(StreamProgramOf, EveryWaitIsNeededAndNoneIsMissing) {
  const int p = GetParam();
  std::size_t waits = 0;
  for (const Case& c : test::cases_of_catalogue(p)) {
    if (c.elements == 0 || (c.elements != 13 && c.elements != p - 1)) continue;
    for (const std::int64_t message : {one_message, std::int64_t{1}, std::int64_t{2}}) {
      for (int rank = 0; rank < p; ++rank) {
        const StreamProgram program =
            compile_for_streams(c.schedule, rank, c.elements, c.type, message);
        ASSERT_TRUE(test::is_ordered(program, c.elements))
            << test::described(c) << " rank " << rank << " message " << message;
        for (std::size_t i = 0; i < program.instructions.size(); ++i) {
          if (!std::holds_alternative<StreamProgram::Wait>(program.instructions[i])) continue;
          ++waits;
          ASSERT_FALSE(test::is_ordered(program, c.elements, i))
              << test::described(c) << " rank " << rank << " message " << message
              << ": nothing needs instruction " << i;
        }
      }
    }
  }
  ASSERT_TRUE(p == 1 || waits > 0);
}

TEST(StreamProgram, RoomsOfScratchAreTwiceThoseOfATurn) {
  const models::Schedule ring = models::ring_all_reduce(4);
  const StreamProgram program = compile_for_streams(ring, 1, 4 * 512, NumberType::fp32, 128);
  EXPECT_EQ(program.scratch_elements, 2 * 128);
  // A room is waited for no earlier than the turn after the next, and a sum before it is sent on.
  EXPECT_LE(program.events, 8);
  EXPECT_EQ(peers(program), (std::vector<int>{0, 2}));
}

// Two schedules that are no all-reduces, for what no schedule of the catalogue has. In one a rank
// adds to what the same step still has to send: rank 0 sends the whole bucket while it adds to the
// second half, so that messages 2 and 3 leave from where messages 0 and 1 are added. In the other a
// sum is replaced without having been sent.
std::vector<Case> uncommon_cases() {
  using namespace models;
  const Schedule both_ways = parallel({Schedule(PointToPoint{2, 0, 1, true}),
                                       on_part(1, 2, Schedule(PointToPoint{2, 1, 0, true}))});
  return {{.name = "both ways", .schedule = sequence({both_ways, both_ways}), .elements = 8},
          {.name = "replaced sum",
           .schedule = sequence(
               {Schedule(PointToPoint{2, 1, 0, true}), Schedule(PointToPoint{2, 1, 0, false})}),
           .elements = 8}};
}

TEST(StreamProgram, WhatAStepStillSendsIsAddedToLaterAndSumsAreReplacedInOrder) {
  for (const Case& c : uncommon_cases()) {
    for (const std::int64_t message : {2, 1, 3, 8}) {
      for (int rank = 0; rank < 2; ++rank) {
        const StreamProgram program = compile_for_streams(c.schedule, rank, 8, c.type, message);
        ASSERT_TRUE(test::is_ordered(program, 8)) << c.name << " message " << message;
        for (std::size_t i = 0; i < program.instructions.size(); ++i) {
          if (std::holds_alternative<StreamProgram::Wait>(program.instructions[i]))
            ASSERT_FALSE(test::is_ordered(program, 8, i)) << c.name << " message " << message;
        }
      }
      std::vector<std::vector<float>> expected = {test::values_of(test::bucket_of(c, 0), c.type),
                                                  test::values_of(test::bucket_of(c, 1), c.type)};
      execute_sequentially(c.schedule, expected);
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const test::Sends sends = seed % 2 == 0 ? test::Sends::eager : test::Sends::rendezvous;
        const std::vector<Bucket> buckets = results(c, message, sends, seed);
        ASSERT_EQ(buckets.size(), 2) << c.name << " message " << message;
        for (std::size_t rank = 0; rank < 2; ++rank)
          ASSERT_EQ(test::values_of(buckets[rank], c.type), expected[rank]) << c.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, StreamProgramOf, testing::Range(1, 9));

}  // namespace
}  // namespace paceline::runtime
