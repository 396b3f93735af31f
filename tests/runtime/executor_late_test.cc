// The executor on a device whose sums are done late: every schedule is the sum on all ranks, and
// every message and every sum waits for what it must wait for.
#include <gmock/gmock.h>

#include "runtime/collective/executor.h"
#include "runtime/transport/thread_transport.h"
#include "tests/support/collective_runs.h"
#include "tests/support/error_of.h"
#include "tests/support/late_device.h"
#include "tests/support/thoroughness.h"

namespace paceline::runtime {
namespace {

using test::Bucket;
using test::Case;
using test::LateDevice;
using test::Lateness;
using test::LateTransport;

// The bucket in memory of the device.
class DeviceBucket {
 public:
  DeviceBucket(Device& device, const Case& c, int rank)
      : memory_(device.allocate(static_cast<std::size_t>(c.elements) * bytes_of(c.type),
                                MemoryKind::pinned)) {
    const Bucket values = test::bucket_of(c, rank);
    std::ranges::copy(values, memory_.bytes().begin());
    view_ = memory_.array(c.type);
  }
  [[nodiscard]] const ArrayView& view() const { return view_; }
  [[nodiscard]] Bucket values() const {
    const std::span<std::byte> bytes = memory_.bytes();
    return {bytes.begin(), bytes.end()};
  }

 private:
  Memory memory_;
  ArrayView view_;
};

void check_all(const std::vector<Case>& cases, Lateness lateness, std::uint64_t seed,
               ExecutorOptions options) {
  if (cases.empty()) return;
  const int p = cases[0].schedule.ranks();
  auto transports = thread_transports(p);
  std::vector<std::vector<Bucket>> results(cases.size(),
                                           std::vector<Bucket>(static_cast<std::size_t>(p)));
  test::on_ranks(p, [&](int rank) {
    const auto inner = std::move(transports[static_cast<std::size_t>(rank)]);
    LateDevice device(lateness, seed * 100 + static_cast<std::uint64_t>(rank));
    LateTransport transport(*inner, device);
    {
      Executor executor(transport, device, options);
      for (std::size_t i = 0; i < cases.size(); ++i) {
        const Case& c = cases[i];
        const DeviceBucket bucket(device, c, rank);
        const Collective collective = executor.prepare(c.schedule, c.elements, c.type);
        const Token token = executor.start(collective, bucket.view(), Token());
        ASSERT_TRUE(token.wait(Seconds{60})) << test::described(c);
        device.touch({bucket.view().data, bucket.view().bytes()}, true, "who reads the sum");
        results[i][static_cast<std::size_t>(rank)] = bucket.values();
        ASSERT_THAT(device.hazards(), testing::IsEmpty()) << test::described(c);
      }
    }
  });
  for (std::size_t i = 0; i < cases.size(); ++i) {
    test::check_results(cases[i], results[i]);
    if (testing::Test::HasFatalFailure()) return;
  }
}

class LateExecutorOf : public testing::TestWithParam<int> {};

TEST_P(LateExecutorOf, EveryScheduleIsTheSumHoweverLateItsSumsAre) {
  for (const Lateness lateness : {Lateness::eager, Lateness::latest, Lateness::random}) {
    for (const std::size_t bytes : {std::size_t{44}, std::size_t{1} << 40}) {
      check_all(test::cases_in_messages(GetParam(), bytes), lateness, 1, {.message_bytes = bytes});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(LateExecutorOf, AnyOrderOfTheDeviceGivesTheSum) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    check_all(test::cases_in_messages(GetParam(), 44), Lateness::random, seed,
              {.message_bytes = 44, .ahead_bytes = 88});
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, LateExecutorOf,
                         testing::ValuesIn(test::cases<std::vector<int>>({1, 2, 3, 4},
                                                                         {1, 2, 3, 4, 5, 8})),
                         [](const auto& p) { return std::to_string(p.param); });

// Collectives of several streams, started before their buckets are ready: a kernel of another
// stream fills them late.
TEST(LateExecutor, WaitsForBucketsThatAreNotReady) {
  constexpr int p = 4;
  constexpr int streams = 3;
  for (const Lateness lateness : {Lateness::eager, Lateness::latest, Lateness::random}) {
    auto transports = thread_transports(p, streams);
    test::on_ranks(p, [&](int rank) {
      const auto inner = std::move(transports[static_cast<std::size_t>(rank)]);
      LateDevice device(lateness, static_cast<std::uint64_t>(rank) + 1);
      LateTransport transport(*inner, device);
      Executor executor(transport, device, {.message_bytes = 64});
      const auto compute = device.make_stream();
      std::vector<Case> cases;
      std::vector<std::unique_ptr<DeviceBucket>> sources;
      std::vector<std::unique_ptr<DeviceBucket>> buckets;
      std::vector<Collective> collectives;
      for (int i = 0; i < 2 * streams; ++i) {
        const auto& algorithm = models::all_reduce_catalogue()[static_cast<std::size_t>(i)];
        cases.push_back({std::string(algorithm.name), algorithm.build({.ranks = p}), 100 + i,
                         test::types[i % 3], static_cast<std::uint64_t>(i)});
        sources.push_back(std::make_unique<DeviceBucket>(device, cases.back(), rank));
        buckets.push_back(std::make_unique<DeviceBucket>(device, cases.back(), rank));
        collectives.push_back(executor.prepare(cases.back().schedule, cases.back().elements,
                                               cases.back().type, i % streams));
      }
      for (int round = 0; round < 3; ++round) {
        std::vector<Token> tokens;
        for (std::size_t i = 0; i < cases.size(); ++i) {
          compute->start(Cast{sources[i]->view(), buckets[i]->view()});
          tokens.push_back(executor.start(collectives[i], buckets[i]->view(), compute->record()));
        }
        for (std::size_t i = 0; i < cases.size(); ++i) {
          ASSERT_TRUE(tokens[i].wait(Seconds{60}));
          test::Expected(cases[i]).check(rank, buckets[i]->values());
        }
      }
      EXPECT_THAT(device.hazards(), testing::IsEmpty());
    });
  }
}

// A stream of the device can wait for a collective: the host makes its progress in between.
TEST(LateExecutor, AStreamWaitsForACollective) {
  constexpr int p = 3;
  const Case c{"ring", models::ring_all_reduce(p), 200, NumberType::fp32, 3};
  auto transports = thread_transports(p);
  test::on_ranks(p, [&](int rank) {
    const auto inner = std::move(transports[static_cast<std::size_t>(rank)]);
    LateDevice device(Lateness::latest, 5);
    LateTransport transport(*inner, device);
    Executor executor(transport, device, {.message_bytes = 64});
    const DeviceBucket bucket(device, c, rank);
    const DeviceBucket copy(device, c, rank);
    const auto stream = device.make_stream();
    const Collective collective = executor.prepare(c.schedule, c.elements, c.type);
    stream->wait_for(executor.start(collective, bucket.view(), Token()));
    stream->start(Cast{bucket.view(), copy.view()});
    wait_for(stream->record(), Seconds{60}, "copy");
    test::Expected(c).check(rank, copy.values());
    EXPECT_THAT(device.hazards(), testing::IsEmpty());
  });
}

// A transport and a device without a kind of memory in common.
class TakesHostMemory final : public Transport {
 public:
  explicit TakesHostMemory(Transport& inner) : inner_(inner), traits_(inner.traits()) {
    traits_.takes = {MemoryKind::host};
  }
  [[nodiscard]] const TransportTraits& traits() const override { return traits_; }
  [[nodiscard]] Request post_send(int stream, int to, std::span<const std::byte> m) override {
    return inner_.post_send(stream, to, m);
  }
  [[nodiscard]] Request post_receive(int stream, int from, std::span<std::byte> room) override {
    return inner_.post_receive(stream, from, room);
  }
  [[nodiscard]] bool test(Request request) override { return inner_.test(request); }
  void wait_any(std::span<const Request> requests) override { inner_.wait_any(requests); }
  void abort() noexcept override { inner_.abort(); }

 private:
  Transport& inner_;
  TransportTraits traits_;
};

TEST(LateExecutor, SaysThatATransportCannotReachTheDevice) {
  const auto transports = thread_transports(1);
  TakesHostMemory transport(*transports[0]);
  LateDevice device(Lateness::latest, 1);
  EXPECT_EQ(test::error_of([&] {
              Executor executor(transport, device);
              return 0;
            }),
            "transport threads takes no memory that device late computes in; choose another "
            "transport or another device");
}

}  // namespace
}  // namespace paceline::runtime
