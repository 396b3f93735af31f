// The executor with its sums on a CUDA device, through pinned memory: several ranks share one GPU.
// Every schedule is the sum on all ranks, and every sum waits for what it must wait for.
#include "runtime/collective/executor.h"

#include "runtime/transport/thread_transport.h"
#include "tests/cuda/device/rig.h"
#include "tests/support/collective_runs.h"
#include "tests/support/thoroughness.h"

namespace paceline::test {
namespace {

using runtime::Collective;
using runtime::Executor;
using runtime::ExecutorOptions;
using runtime::Token;

constexpr Seconds long_enough{60};

// All ranks run all cases, one after the other.
void check_all(const std::vector<Case>& cases, ExecutorOptions options) {
  const int p = cases.front().schedule.ranks();
  const auto transports = runtime::thread_transports(p);
  std::vector<std::vector<Bucket>> results(cases.size(),
                                           std::vector<Bucket>(static_cast<std::size_t>(p)));
  on_ranks(p, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    CudaDevice device;
    Executor executor(*transports[r], device, options);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Case& c = cases[i];
      const Bucket values = bucket_of(c, rank);
      const Memory bucket = device.allocate(values.size(), MemoryKind::pinned);
      std::ranges::copy(values, bucket.bytes().begin());
      const Collective collective = executor.prepare(c.schedule, c.elements, c.type);
      const Token token = executor.start(collective, bucket.array(c.type), Token());
      ASSERT_TRUE(token.wait(long_enough)) << described(c);
      const std::span<const std::byte> bytes = bucket.bytes();
      results[i][r] = {bytes.begin(), bytes.end()};
    }
  });
  for (std::size_t i = 0; i < cases.size(); ++i) {
    check_results(cases[i], results[i]);
    if (testing::Test::HasFatalFailure()) return;
  }
}

class CudaExecutorOf : public testing::TestWithParam<int> {};

TEST_P(CudaExecutorOf, EveryScheduleIsTheSum) {
  in_every_order(
      2, [](std::uint64_t) { check_all(cases_in_messages(GetParam(), std::size_t{1} << 40), {}); });
}

// A schedule of each algorithm in small messages, of which the seed takes two.
TEST_P(CudaExecutorOf, AnyOrderOfTheDeviceGivesTheSum) {
  const std::vector<Case> cases = cases_in_messages(GetParam(), 44);
  in_every_order(test::cases(6, 20), [&](std::uint64_t seed) {
    check_all({cases[seed % cases.size()], cases[(7 * seed + 3) % cases.size()]},
              {.message_bytes = 44, .ahead_bytes = 88});
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CudaExecutorOf,
                         testing::ValuesIn(cases<std::vector<int>>({1, 2, 3, 4}, {1, 2, 3, 4, 8})),
                         [](const auto& p) { return std::to_string(p.param); });

// Buckets that a kernel of another stream fills late, and that a third stream reads after.
TEST(CudaExecutor, StandsBetweenStreamsOfItsDevice) {
  constexpr int p = 3;
  const Case c{"ring", models::ring_all_reduce(p), 200, NumberType::fp32, 3};
  in_every_order(20, [&](std::uint64_t) {
    const auto transports = runtime::thread_transports(p);
    on_ranks(p, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      CudaDevice device;
      Executor executor(*transports[r], device, {.message_bytes = 64});
      const auto compute = device.make_stream();
      const auto after = device.make_stream();
      const Memory source = on_device(device, *compute, bucket_of(c, rank));
      const Memory bucket = device.allocate(source.size(), MemoryKind::pinned);
      const Memory copy = device.allocate(source.size(), MemoryKind::device);
      const Collective collective = executor.prepare(c.schedule, c.elements, c.type);
      for (int round = 0; round < 3; ++round) {
        compute->wait_for(after->record());
        compute->start(runtime::Cast{source.array(c.type), bucket.array(c.type)});
        after->wait_for(executor.start(collective, bucket.array(c.type), compute->record()));
        after->start(runtime::Cast{bucket.array(c.type), copy.array(c.type)});
      }
      Expected(c).check(rank, bytes_of(device, *after, copy));
    });
  });
}

}  // namespace
}  // namespace paceline::test
