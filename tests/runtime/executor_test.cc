// The executor on threads: every schedule of the catalogue does what its collective promises, and
// all-reduces with the same bits on all ranks, whatever the size, the wire type and the size of messages.
#include "runtime/collective/executor.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

#include "models/base/error.h"
#include "models/collective/rank_program.h"
#include "runtime/collective/sequential_executor.h"
#include "runtime/transport/thread_transport.h"
#include "tests/support/collective_runs.h"
#include "tests/support/error_of.h"
#include "tests/support/generators.h"
#include "tests/support/schedules.h"
#include "tests/support/thoroughness.h"

namespace {
// Allocations of this thread while it counts them.
thread_local bool counts = false;
thread_local int allocations = 0;

void* counted(std::size_t size) {
  if (counts) ++allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (counts) ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace paceline::runtime {
namespace {

using models::Schedule;
using test::Bucket;

using test::Case;
using test::run_error_of;
using test::types;

// Runs all cases, of as many ranks, one after the other in one job.
void check_all(const std::vector<Case>& cases, ExecutorOptions options) {
  if (cases.empty()) return;
  const int p = cases[0].schedule.ranks();
  auto transports = thread_transports(p);
  std::vector<std::vector<Bucket>> results(cases.size(),
                                           std::vector<Bucket>(static_cast<std::size_t>(p)));
  test::on_ranks(p, [&](int rank) {
    const auto transport = std::move(transports[static_cast<std::size_t>(rank)]);
    Executor executor(*transport, options);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Case& c = cases[i];
      Bucket& bucket = results[i][static_cast<std::size_t>(rank)];
      bucket = test::bucket_of(c, rank);
      executor.run(executor.prepare(c.schedule, c.elements, c.type), bucket.data());
    }
  });
  for (std::size_t i = 0; i < cases.size(); ++i) {
    test::check_results(cases[i], results[i]);
    if (testing::Test::HasFatalFailure()) return;
  }
}

class ExecutorOf : public testing::TestWithParam<int> {};

TEST_P(ExecutorOf, EveryScheduleKeepsItsPromiseForEverySizeAndType) {
  check_all(test::cases_of_catalogue(GetParam()), {});
}

TEST_P(ExecutorOf, TheSizeOfMessagesDoesNotChangeTheResult) {
  for (const std::size_t bytes : test::message_sizes) {
    check_all(test::cases_in_messages(GetParam(), bytes), {.message_bytes = bytes});
    if (HasFatalFailure()) return;
  }
}

TEST_P(ExecutorOf, HoldingSendsBackDoesNotChangeTheResult) {
  for (const std::size_t bytes : {13, 44}) {
    check_all(test::cases_in_messages(GetParam(), bytes),
              {.message_bytes = bytes, .ahead_bytes = 2 * static_cast<std::int64_t>(bytes)});
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExecutorOf, testing::Range(1, test::cases(10, 17)),
                         [](const auto& p) { return std::to_string(p.param); });

TEST(Executor, LargeBucketsAreTheSum) {
  for (const int p : test::cases<std::vector<int>>({2, 3}, {2, 3, 8})) {
    std::vector<Case> cases;
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      for (const NumberType type : {NumberType::fp32, NumberType::bf16})
        cases.push_back({name, schedule, 40'003, type, 7});
      if (cases.size() >= 12) break;
    }
    check_all(cases, {.message_bytes = std::size_t{1} << 16});
    if (HasFatalFailure()) return;
  }
}

RC_GTEST_PROP(Executor, RunsRandomSchedules, ()) {
  const Schedule schedule = *test::all_reduce_schedules(12);
  const std::int64_t elements = test::drawn(0, 400);
  const NumberType type =
      *rc::gen::elementOf(std::vector<NumberType>(std::begin(types), std::end(types)));
  const auto message = static_cast<std::size_t>(test::drawn(1, 600));
  const std::int64_t ahead = test::drawn(0, 3) * static_cast<std::int64_t>(message);
  check_all({{"random", schedule, elements, type, 3}},
            {.message_bytes = message, .ahead_bytes = ahead});
  RC_ASSERT(!testing::Test::HasFatalFailure());
}

// Every rank's bucket after a schedule that need not be an all-reduce, with sums that do not round.
void check_against_the_sequential(const Schedule& schedule, std::int64_t elements,
                                  ExecutorOptions options) {
  const int p = schedule.ranks();
  std::vector<std::vector<float>> expected(static_cast<std::size_t>(p));
  for (int r = 0; r < p; ++r) {
    for (std::int64_t i = 0; i < elements; ++i)
      expected[static_cast<std::size_t>(r)].push_back(static_cast<float>((r * 31 + i * 7) % 64));
  }
  auto buckets = expected;
  execute_sequentially(schedule, expected);
  auto transports = thread_transports(p);
  test::on_ranks(p, [&](int rank) {
    const auto transport = std::move(transports[static_cast<std::size_t>(rank)]);
    Executor executor(*transport, options);
    executor.run(executor.prepare(schedule, elements, NumberType::fp32),
                 buckets[static_cast<std::size_t>(rank)].data());
  });
  for (int r = 0; r < p; ++r) {
    ASSERT_EQ(buckets[static_cast<std::size_t>(r)], expected[static_cast<std::size_t>(r)])
        << schedule.description() << " rank " << r;
  }
}

// Messages that replace what others still read, and chains of forwards: nothing in the data orders
// them, as it does in an all-reduce.
RC_GTEST_PROP(Executor, RunsRandomMessages, ()) {
  const int p = test::drawn(2, 5);
  std::vector<Schedule> steps;
  for (int step = test::drawn(1, 30); step > 0; --step) {
    const int from = test::drawn(0, p - 1);
    const int to = (from + test::drawn(1, p - 1)) % p;
    const int of = test::drawn(1, 3);
    const Schedule message(
        models::PointToPoint{.ranks = p, .from = from, .to = to, .reduce = test::drawn(0, 2) == 0});
    steps.push_back(models::on_part(test::drawn(0, of - 1), of, message));
  }
  check_against_the_sequential(models::sequence(std::move(steps)), 60,
                               {.message_bytes = static_cast<std::size_t>(test::drawn(1, 300)),
                                .ahead_bytes = test::drawn(0, 2)});
  RC_ASSERT(!testing::Test::HasFatalFailure());
}

// Ranks 0, 1 and 2 add twenty messages of rank 3 to what they send to each other in the same step:
// none can land before the others have posted what comes last.
TEST(Executor, PostsWhatOthersWaitFor) {
  constexpr int p = 4;
  const auto message = [](int from, int to) {
    return Schedule(models::PointToPoint{.ranks = p, .from = from, .to = to, .reduce = true});
  };
  std::vector<Schedule> parts;
  for (int i = 0; i < 20; ++i) {
    for (int to = 0; to < 3; ++to) parts.push_back(message(3, to));
  }
  for (int from = 0; from < 3; ++from) parts.push_back(message(from, (from + 1) % 3));
  check_against_the_sequential(models::parallel(std::move(parts)), 100, {.message_bytes = 100});
}

// Messages of any size to and from anywhere in one step, all added, in place, to what is sent.
RC_GTEST_PROP(Executor, RunsRandomStepsOfMessagesInParallel, ()) {
  const int p = test::drawn(2, 5);
  std::vector<Schedule> steps;
  for (int step = test::drawn(1, 4); step > 0; --step) {
    std::vector<Schedule> parts;
    for (int message = test::drawn(1, 8); message > 0; --message) {
      const int from = test::drawn(0, p - 1);
      const int to = (from + test::drawn(1, p - 1)) % p;
      const int of = test::drawn(1, 3);
      parts.push_back(models::on_part(
          test::drawn(0, of - 1), of,
          Schedule(models::PointToPoint{.ranks = p, .from = from, .to = to, .reduce = true})));
    }
    steps.push_back(models::parallel(std::move(parts)));
  }
  check_against_the_sequential(models::sequence(std::move(steps)), 60,
                               {.message_bytes = static_cast<std::size_t>(test::drawn(1, 100)),
                                .ahead_bytes = test::drawn(0, 2)});
  RC_ASSERT(!testing::Test::HasFatalFailure());
}

// What a rank sends in a ring is as far ahead of what it receives as it may be, and no further.
RC_GTEST_PROP(Executor, SendsOfARingRunAheadAsFarAsTheyMay, ()) {
  const int p = test::drawn(2, 9);
  const std::int64_t messages = test::drawn(2, 12);
  const std::int64_t ahead = test::drawn(2, static_cast<int>(messages));
  const models::RankProgram program = models::compile(
      models::all_reduce_algorithm("ring").build({.ranks = p}), test::drawn(0, p - 1),
      p * messages * 5, NumberType::fp32,
      {.message_elements = 5, .window_elements = 1, .ahead_elements = ahead * 5 + 4});
  RC_ASSERT(program.sends_at_start == ahead);
  for (std::size_t i = 0; i < program.receives.size(); ++i) {
    const auto most = static_cast<std::size_t>(ahead) + i + 1;
    RC_ASSERT(program.receives[i].sends_after == std::min(program.sends.size(), most));
  }
}

// NaN at one element of one rank, infinity at another: they are there at all ranks, and nowhere
// else; opposite infinities make NaN.
TEST(Executor, CarriesWhatIsNotFinite) {
  constexpr int p = 6;
  constexpr std::int64_t elements = 50;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [name, schedule] : test::all_reduces(p)) {
    for (const NumberType type : types) {
      auto transports = thread_transports(p);
      test::on_ranks(p, [&, &schedule = schedule, &name = name](int rank) {
        const auto transport = std::move(transports[static_cast<std::size_t>(rank)]);
        std::vector<float> values(elements, 1.0F);
        if (rank == 4) values[7] = std::numeric_limits<float>::quiet_NaN();
        if (rank == 0) values[20] = infinity;
        if (rank == 5) values[49] = -infinity;
        if (rank == 2) values[30] = infinity;
        if (rank == 3) values[30] = -infinity;
        Bucket bucket = test::bucket_of(values, type);
        Executor executor(*transport, {.message_bytes = 24});
        executor.run(executor.prepare(schedule, elements, type), bucket.data());
        const std::vector<float> result = test::values_of(bucket, type);
        for (std::size_t i = 0; i < result.size(); ++i) {
          if (i == 7 || i == 30)
            EXPECT_TRUE(std::isnan(result[i])) << name << ' ' << i;
          else if (i == 20)
            EXPECT_EQ(result[i], infinity) << name;
          else if (i == 49)
            EXPECT_EQ(result[i], -infinity) << name;
          else
            EXPECT_EQ(result[i], 6.0F) << name << ' ' << i;
        }
      });
    }
  }
}

// 1 + 2^-9 four times: each rank's own sum rounds to BF16 (8 bits) once, so none of it is lost as
// it would be if each addition rounded: 1, 2, 3, 4 + 2^-7 rounds to 4; with six, 6 + 6 * 2^-7 ...
TEST(Executor, RoundsConsecutiveContributionsOnce) {
  constexpr int p = 5;
  auto transports = thread_transports(p);
  const Schedule served =
      models::sequence({Schedule(models::ServerPush{p, 1}), Schedule(models::ServerPull{p, 1})});
  test::on_ranks(p, [&](int rank) {
    const auto transport = std::move(transports[static_cast<std::size_t>(rank)]);
    Bucket bucket =
        test::bucket_of(std::vector<float>(9, rank == 0 ? 256.0F : 1.0F), NumberType::bf16);
    Executor executor(*transport, {.message_bytes = 6});
    executor.run(executor.prepare(served, 9, NumberType::bf16), bucket.data());
    EXPECT_EQ(test::values_of(bucket, NumberType::bf16), std::vector<float>(9, 260.0F));
  });
}

TEST(Executor, RunsStreamsAtTheSameTimeAndCollectivesOfAStreamInOrder) {
  constexpr int p = 4;
  constexpr int streams = 3;
  constexpr int rounds = 20;
  auto transports = thread_transports(p, streams);
  test::on_ranks(p, [&](int rank) {
    const auto transport = std::move(transports[static_cast<std::size_t>(rank)]);
    Executor executor(*transport, {.message_bytes = 64});
    std::vector<Collective> collectives;
    std::vector<std::vector<float>> buckets;
    for (int stream = 0; stream < streams; ++stream) {
      for (int i = 0; i < 3; ++i) {
        const auto& algorithm =
            models::all_reduce_catalogue()[static_cast<std::size_t>(stream + 2 * i)];
        collectives.push_back(
            executor.prepare(algorithm.build({.ranks = p}), 100 + i, NumberType::fp32, stream));
        buckets.emplace_back(static_cast<std::size_t>(100 + i));
      }
    }
    for (int round = 0; round < rounds; ++round) {
      // Each rank takes the streams in another order; each stream's collectives are in order.
      for (std::size_t i = 0; i < collectives.size(); ++i) {
        const std::size_t at = (i + static_cast<std::size_t>(3 * rank)) % collectives.size();
        std::fill(buckets[at].begin(), buckets[at].end(), static_cast<float>(rank + round));
        executor.start(collectives[at], buckets[at].data());
      }
      for (std::size_t i = 0; i < collectives.size(); ++i) {
        const std::size_t at = (i * 5 + static_cast<std::size_t>(rank)) % collectives.size();
        executor.wait(collectives[at]);
        ASSERT_TRUE(executor.done(collectives[at]));
        ASSERT_EQ(buckets[at],
                  std::vector<float>(buckets[at].size(), static_cast<float>(6 + 4 * round)));
      }
    }
  });
}

TEST(Executor, AllocatesNothingOnceItRuns) {
  constexpr int p = 4;
  auto transports = thread_transports(p, 2);
  test::on_ranks(p, [&](int rank) {
    const auto transport = std::move(transports[static_cast<std::size_t>(rank)]);
    Executor executor(*transport, {.message_bytes = 256});
    std::vector<std::pair<Collective, Bucket>> runs;
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      for (const NumberType type : {NumberType::fp32, NumberType::fp16}) {
        runs.emplace_back(executor.prepare(schedule, 1000, type, static_cast<int>(runs.size() % 2)),
                          Bucket(4000));
      }
    }
    // How many messages are in flight depends on timing, so that the pool may grow in any round. What
    // allocates whenever it runs does so in all of them.
    int without = 0;  // rounds in a row that allocated nothing
    int most = 0;
    for (int round = 0; round < 60; ++round) {
      allocations = 0;
      counts = true;
      for (auto& [collective, bucket] : runs) executor.start(collective, bucket.data());
      for (auto& [collective, bucket] : runs) executor.wait(collective);
      counts = false;
      without = allocations == 0 ? without + 1 : 0;
      most = std::max(most, without);
    }
    EXPECT_GE(most, 5);
  });
}

TEST(Executor, SaysWhatDoesNotFit) {
  const auto transports = thread_transports(2, 2);
  Executor executor(*transports[0]);
  EXPECT_EQ(test::error_of(
                [&] { return executor.prepare(models::ring_all_reduce(3), 1, NumberType::fp32); }),
            "a schedule over 3 ranks for a job of 2; give one over as many ranks as there are");
  EXPECT_EQ(test::error_of([&] {
              return executor.prepare(models::ring_all_reduce(2), 1, NumberType::fp32, 2);
            }),
            "stream 2 of 2; give one from 0 to 1");
}

TEST(Executor, NamesAPeerThatIsGone) {
  constexpr int p = 3;
  auto transports = thread_transports(p);
  test::on_ranks(p, [&](int rank) {
    auto transport = std::move(transports[static_cast<std::size_t>(rank)]);
    std::vector<float> bucket(1000, 1.0F);
    Executor executor(*transport, {.message_bytes = 100});
    const Collective collective =
        executor.prepare(models::ring_all_reduce(p), 1000, NumberType::fp32);
    executor.run(collective, bucket.data());
    if (rank == 2) return;  // its transport is destroyed
    const std::string error = run_error_of([&] { executor.run(collective, bucket.data()); });
    // Rank 0 receives from rank 2. Rank 1 sends to it, and receives from rank 0, which then leaves.
    if (rank == 0) EXPECT_EQ(error, "cannot receive from rank 2: it is gone");
    if (rank == 1)
      EXPECT_TRUE(error == "cannot send to rank 2: it is gone" ||
                  error == "cannot receive from rank 0: it is gone")
          << error;
  });
}

}  // namespace
}  // namespace paceline::runtime
