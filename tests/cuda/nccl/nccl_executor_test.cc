// The NCCL executor: every schedule of the catalogue has the bits of the executor on transports, in
// every order of operations, whether sends are buffered or not; nothing races; and a failure of any
// call ends the job in one line.
#include "runtime/collective/nccl/nccl_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "models/base/error.h"
#include "models/collective/algorithms.h"
#include "models/collective/combinators.h"
#include "runtime/channel/tcp_channel.h"
#include "runtime/transport/job_proof.h"
#include "tests/cuda/nccl/nccl_job.h"
#include "tests/support/error_of.h"
#include "tests/support/executor_results.h"
#include "tests/support/free_port.h"
#include "tests/support/thoroughness.h"

namespace paceline::runtime {
namespace {

using cuda_on_host::Order;
using test::Bucket;
using test::Case;
using test::DeviceBucket;
using test::NcclRank;

// Every collective of the catalogue with all its options, each with one of the sizes: in all types,
// or with more than 4 ranks in the types in turn.
std::vector<Case> cases_of(int p) {
  std::vector<Case> cases;
  for (const Case& c : test::cases_of_catalogue(p)) {
    const std::array<std::int64_t, 4> sizes = {13, 1000, p - 1, 1};
    const bool in_turn = p <= 4 || c.type == test::types[c.seed / 5 % 3];
    if (in_turn && c.elements == sizes[c.seed / 5 % 4]) cases.push_back(c);
  }
  return cases;
}

// A few that differ in kind, over 4 ranks: neighbours, halves, groups, trees, servers.
std::vector<Case> few_cases() {
  using namespace models;
  std::vector<Case> cases;
  const auto add = [&](const char* name, Schedule schedule, NumberType type) {
    cases.push_back({name, std::move(schedule), 100, type, cases.size() + 1});
  };
  add("ring", ring_all_reduce(4), NumberType::fp32);
  add("halving-doubling", halving_doubling_all_reduce(4), NumberType::fp16);
  add("hierarchical", test::hierarchical_reduce_scatter(4, 2), NumberType::bf16);
  add("direct", sequence({Schedule(ServerPush{4, 4}), Schedule(ServerPull{4, 4})}),
      NumberType::fp16);
  add("chain",
      sequence({pipelined(3, Schedule(ChainReduce{4})), pipelined(3, Schedule(ChainBroadcast{4}))}),
      NumberType::fp32);
  return cases;
}

// Runs the cases one after the other in one job. Every rank ends with the bits.
void check_all(const std::vector<Case>& cases, const std::vector<std::vector<Bucket>>& expected,
               const NcclOptions& options) {
  if (cases.empty()) return;
  test::run_nccl_job(cases.front().schedule.ranks(), options, [&](const NcclRank& r) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Case& c = cases[i];
      DeviceBucket bucket(r.device, test::bucket_of(c, r.rank()), c.type);
      const Collective collective = r.executor.prepare(c.schedule, c.elements, c.type);
      const Token done = r.executor.start(collective, bucket.view(), bucket.ready());
      EXPECT_EQ(bucket.after(done), expected[i][to_size(r.rank())])
          << test::described(c) << " rank " << r.rank();
      if (testing::Test::HasFailure()) return;
    }
  });
}

class NcclExecutorOf : public testing::TestWithParam<int> {};

TEST_P(NcclExecutorOf, EveryScheduleHasTheExecutorsBits) {
  const int p = GetParam();
  PACELINE_NEEDS_GPUS(p);
  const std::vector<Case> cases = cases_of(p);
  test::begin(Order::random, static_cast<std::uint64_t>(p));
  check_all(cases, test::executor_results(cases), {.message_bytes = 512});
  test::expect_clean();
}

INSTANTIATE_TEST_SUITE_P(Ranks, NcclExecutorOf, testing::Range(1, test::cases(5, 9)));

TEST(NcclExecutor, NothingRacesInAnyOrderWhetherSendsAreBufferedOrNot) {
  PACELINE_NEEDS_GPUS(4);
  const std::vector<Case> cases = few_cases();
  const std::vector<std::vector<Bucket>> expected = test::executor_results(cases);
  for (std::uint64_t seed = 1; seed <= 22; ++seed) {
    const Order order = seed == 1 ? Order::eager : seed == 2 ? Order::latest : Order::random;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    test::begin(order, seed);
    if (seed % 2 == 0) cuda_on_host::nccl::buffer_sends(std::size_t{1} << 20);
    check_all(cases, expected, {.message_bytes = 64});
    test::expect_clean();
    if (HasFailure() || !cuda_on_host::present()) return;
  }
}

TEST(NcclExecutor, CollectivesOfTwoStreamsRunBesideEachOtherAndThoseOfOneBehind) {
  PACELINE_NEEDS_GPUS(3);
  std::vector<Case> cases;
  for (int i = 0; i < 6; ++i)
    cases.push_back({"ring", models::ring_all_reduce(3), 50 + 10 * i, test::types[i % 3],
                     static_cast<std::uint64_t>(i + 1)});
  const std::vector<std::vector<Bucket>> expected = test::executor_results(cases);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    test::begin(Order::random, seed);
    test::run_nccl_job(3, {.streams = 2, .message_bytes = 64}, [&](const NcclRank& r) {
      std::vector<Collective> collectives;
      for (std::size_t i = 0; i < cases.size(); ++i)
        collectives.push_back(r.executor.prepare(cases[i].schedule, cases[i].elements,
                                                 cases[i].type, static_cast<int>(i % 2)));
      std::vector<std::unique_ptr<DeviceBucket>> buckets;
      std::vector<Token> done;
      for (std::size_t i = 0; i < cases.size(); ++i) {
        buckets.push_back(std::make_unique<DeviceBucket>(
            r.device, test::bucket_of(cases[i], r.rank()), cases[i].type));
        done.push_back(r.executor.start(collectives[i], buckets[i]->view(), buckets[i]->ready()));
      }
      for (std::size_t i = cases.size(); i-- > 0;)
        EXPECT_EQ(buckets[i]->after(done[i]), expected[i][to_size(r.rank())]) << "collective " << i;
    });
    test::expect_clean();
    if (HasFailure() || !cuda_on_host::present()) return;
  }
}

TEST(NcclExecutor, ACollectiveIsStartedAgainAndAgain) {
  PACELINE_NEEDS_GPUS(2);
  test::begin(Order::random, 3);
  const Case c{"ring", models::ring_all_reduce(2), 30, NumberType::fp32, 1};
  test::run_nccl_job(2, {.message_bytes = 16}, [&](const NcclRank& r) {
    const Collective collective = r.executor.prepare(c.schedule, c.elements, c.type);
    const std::vector<float> ones(30, 1);
    DeviceBucket bucket(r.device, test::bucket_of(ones, c.type), c.type);
    Token done = bucket.ready();
    for (int i = 0; i < 5; ++i) {
      done = r.executor.start(collective, bucket.view(), done);
      wait_for(done, Seconds{20}, "all-reduce");
    }
    EXPECT_THAT(test::values_of(bucket.after(done), c.type), testing::Each(32.F));
  });
  test::expect_clean();
}

// As on machines without MPI.
TEST(NcclExecutor, RanksThatMeetByTcpHaveCommunicators) {
  PACELINE_NEEDS_GPUS(3);
  try {
    static_cast<void>(tcp::random_digest());
  } catch (const UnavailableError& error) {
    GTEST_SKIP() << error.what();
  }
  test::begin(Order::random, 1);
  const Case c{"ring", models::ring_all_reduce(3), 30, NumberType::bf16, 1};
  const Bucket expected = test::executor_results({c}).front().front();
  const Rendezvous place{"127.0.0.1", test::free_port()};
  test::on_ranks(3, [&](int rank) {
    CudaDevice device(rank);
    TcpChannel channel(place, {.description = "model: of the test\n"}, rank, 3, Seconds{20});
    NcclExecutor executor(channel, device, {});
    DeviceBucket bucket(device, test::bucket_of(c, rank), c.type);
    const Collective collective = executor.prepare(c.schedule, c.elements, c.type);
    const Token done = executor.start(collective, bucket.view(), bucket.ready());
    EXPECT_EQ(bucket.after(done), expected);
  });
  test::expect_clean();
}

TEST(NcclExecutor, TheLibrarysAllReduceIsTheSum) {
  PACELINE_NEEDS_GPUS(3);
  for (const NumberType type : test::types) {
    test::begin(Order::random, 5);
    test::run_nccl_job(3, {}, [&](const NcclRank& r) {
      const Collective collective =
          r.executor.prepare(models::called(models::Library::nccl, 3), 17, type, 0);
      // Small integers: no order of additions rounds.
      std::vector<float> values, sums;
      for (int i = 0; i < 17; ++i) {
        values.push_back(static_cast<float>(r.rank() * 16 + i));
        sums.push_back(static_cast<float>(48 + 3 * i));
      }
      DeviceBucket bucket(r.device, test::bucket_of(values, type), type);
      const Token done = r.executor.start(collective, bucket.view(), bucket.ready());
      EXPECT_EQ(test::values_of(bucket.after(done), type), sums);
    });
    test::expect_clean();
  }
}

TEST(NcclExecutor, RefusesWhatItCannotPrepare) {
  PACELINE_NEEDS_GPUS(1);
  test::begin(Order::eager, 1);
  test::run_nccl_job(1, {}, [](const NcclRank& r) {
    const auto error = [&](auto&&... arguments) {
      return test::error_of([&] { return r.executor.prepare(arguments...); });
    };
    EXPECT_EQ(error(models::ring_all_reduce(2), 8, NumberType::fp32, 0),
              "a schedule over 2 ranks for a job of 1; give one over as many ranks as there are");
    EXPECT_EQ(error(models::Schedule(), 8, NumberType::fp32, 1),
              "stream 1 of 1; give one from 0 to 0");
    EXPECT_EQ(error(models::called(models::Library::open_mpi, 1), 8, NumberType::fp32, 0),
              "strategy open-mpi is a library's own all-reduce, which executor nccl does not "
              "have; choose a strategy with a schedule, such as fused-ring");
  });
}

}  // namespace
}  // namespace paceline::runtime
