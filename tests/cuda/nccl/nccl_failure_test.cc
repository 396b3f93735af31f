// Failures under the NCCL executor: whatever call fails, on whichever rank, every rank ends, in one
// line that names the rank, and nothing is left over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "models/base/error.h"
#include "models/collective/algorithms.h"
#include "tests/cuda/nccl/nccl_job.h"
#include "tests/support/executor_results.h"

namespace paceline::runtime {
namespace {

using cuda_on_host::Order;
using test::Bucket;
using test::Case;
using test::DeviceBucket;
using test::NcclRank;
using testing::HasSubstr;

class NcclFailure : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_on_host::nccl::present()) GTEST_SKIP() << "takes the faults of the doubles";
  }
};

const Case& small_ring() {
  static const Case c{"ring", models::ring_all_reduce(2), 20, NumberType::fp16, 1};
  return c;
}

// What each rank ended with: its error, or nothing where its bucket had the right bits.
std::vector<std::string> outcomes(const NcclOptions& options) {
  const Case& c = small_ring();
  static const Bucket expected = test::executor_results({c}).front().front();
  std::vector<std::string> errors(2, "did not end");
  try {
    run_as_threads(2, 1, Seconds{5}, [&](const Endpoint& endpoint) {
      std::string& error = errors[static_cast<std::size_t>(endpoint.channel.rank())];
      try {
        CudaDevice device(endpoint.channel.rank());
        NcclExecutor executor(endpoint.channel, device, options);
        DeviceBucket bucket(device, test::bucket_of(c, endpoint.channel.rank()), c.type);
        const Collective collective = executor.prepare(c.schedule, c.elements, c.type);
        const Token done = executor.start(collective, bucket.view(), bucket.ready());
        wait_for(done, Seconds{20}, "all-reduce");
        const Bucket result = bucket.after(done);
        error = result == expected ? "" : "wrong bits";
      } catch (const std::exception& caught) {
        error = caught.what();
        throw;
      }
    });
  } catch (const RunError&) {
  }
  return errors;
}

// A call that fails is an error of its rank, unless it gives something back or only asks.
TEST_F(NcclFailure, OfAnyCallEndsTheJob) {
  test::begin(Order::random, 1);
  ASSERT_THAT(outcomes({.message_bytes = 8}), testing::Each(""));
  const std::map<std::string, int> errors = {{"ncclGetUniqueId", 2},
                                             {"ncclCommInitRankConfig", 2},
                                             {"ncclGroupStart", 3},
                                             {"ncclGroupEnd", 3},
                                             {"ncclSend", 2},
                                             {"ncclRecv", 2},
                                             {"ncclCommDestroy", 2},
                                             {"ncclCommGetAsyncError", 3},
                                             {"cudaMalloc", 2},
                                             {"cudaHostAlloc", 2},
                                             {"cudaStreamCreateWithFlags", 2},
                                             {"cudaEventCreateWithFlags", 2},
                                             {"cudaEventRecord", 999},
                                             {"cudaStreamWaitEvent", 999},
                                             {"cudaMemcpyAsync", 999},
                                             {"cudaLaunchKernelExC", 999},
                                             {"cudaEventQuery", 999},
                                             {"cudaStreamDestroy", 999},
                                             {"cudaFree", 999}};
  std::map<std::string, long> calls;
  for (const auto& [function, error] : errors) calls[function] = cuda_on_host::calls(function);
  int failed = 0;
  for (const auto& [function, error] : errors) {
    EXPECT_GT(calls[function], 0) << function;
    const long step = 1 + calls[function] / 12;
    for (long number = 1; number <= calls[function]; number += step) {
      SCOPED_TRACE(testing::Message() << "call " << number << " of " << function);
      test::begin(Order::random, 1);
      cuda_on_host::fail(function, static_cast<int>(number), error);
      const std::vector<std::string> ends =
          outcomes({.patience = Seconds{0.3}, .message_bytes = 8});
      for (const std::string& end : ends) {
        EXPECT_NE(end, "did not end");
        EXPECT_NE(end, "wrong bits");
        EXPECT_THAT(end, testing::Not(HasSubstr("\n")));
        if (!end.empty()) EXPECT_THAT(end, testing::StartsWith("cannot "));
      }
      failed += ends != std::vector<std::string>(2) ? 1 : 0;
      test::expect_clean();
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(failed, 50);
}

TEST_F(NcclFailure, OfAPeerIsSeenAtOnceWhereNcclSeesIt) {
  test::begin(Order::random, 2);
  cuda_on_host::fail("ncclRecv", 5, 2);
  const std::vector<std::string> ends = outcomes({.message_bytes = 8});
  const bool first = ends[0].find("system error") != std::string::npos;
  const std::string lost = ends[first ? 1 : 0];
  EXPECT_THAT(
      ends[first ? 0 : 1],
      testing::MatchesRegex("cannot all-reduce as rank [01] of 2: unhandled system error.*"));
  EXPECT_EQ(lost, first ? "cannot all-reduce as rank 1 of 2: remote process exited or there was a "
                          "network error (rank 0 has left)"
                        : "cannot all-reduce as rank 0 of 2: remote process exited or there was a "
                          "network error (rank 1 has left)");
  test::expect_clean();
}

// NCCL need not tell of a rank that failed; the channel does.
TEST_F(NcclFailure, OfAPeerThatNcclDoesNotSeeIsSeenByTheChannel) {
  test::begin(Order::random, 2);
  cuda_on_host::nccl::hide_aborts(true);
  cuda_on_host::fail("ncclRecv", 5, 2);
  std::vector<std::string> ends = outcomes({.patience = Seconds{200}, .message_bytes = 8});
  std::sort(ends.begin(), ends.end());
  EXPECT_THAT(ends, testing::Contains(testing::MatchesRegex(
                        "cannot all-reduce as rank [01] of 2: unhandled system error.*")));
  EXPECT_THAT(ends, testing::Contains(testing::MatchesRegex(
                        "cannot all-reduce as rank [01] of 2: rank [01] is gone")));
  test::expect_clean();
}

// A rank that is there and does nothing.
TEST_F(NcclFailure, OfASilentPeerIsATimeout) {
  test::begin(Order::random, 2);
  const Case& c = small_ring();
  std::string error;
  run_as_threads(2, 1, Seconds{60}, [&](const Endpoint& endpoint) {
    CudaDevice device(endpoint.channel.rank());
    NcclExecutor executor(endpoint.channel, device, {.patience = Seconds{1}});
    DeviceBucket bucket(device, test::bucket_of(c, endpoint.channel.rank()), c.type);
    const Collective collective = executor.prepare(c.schedule, c.elements, c.type);
    std::byte said{};
    if (endpoint.channel.rank() == 1) return endpoint.channel.receive(0, {&said, 1});
    try {
      wait_for(executor.start(collective, bucket.view(), bucket.ready()), Seconds{60},
               "all-reduce");
    } catch (const RunError& caught) {
      error = caught.what();
    }
    endpoint.channel.send(1, {&said, 1});
  });
  EXPECT_EQ(error, "cannot all-reduce as rank 0 of 2: nothing was done for 1 s");
  test::expect_clean();
}

TEST_F(NcclFailure, OfARankThatDoesNotComeIsATimeout) {
  test::begin(Order::eager, 1);
  cuda_on_host::fail("ncclCommInitRankConfig", 1, 2);
  const std::vector<std::string> ends = outcomes({.patience = Seconds{1}});
  EXPECT_THAT(ends, testing::Contains(testing::MatchesRegex(
                        "cannot make an NCCL communicator as rank [01] of 2: unhandled system "
                        "error.*")));
  EXPECT_THAT(ends, testing::Contains(testing::MatchesRegex(
                        "cannot make an NCCL communicator as rank [01] of 2: the other ranks did "
                        "not come in 1 s")));
  test::expect_clean();
}

TEST_F(NcclFailure, OfTwoRanksOnOneGpuNamesBoth) {
  test::begin(Order::eager, 1);
  std::string error = "none";
  try {
    run_as_threads(2, 1, Seconds{5}, [](const Endpoint& endpoint) {
      CudaDevice device(0);
      NcclExecutor executor(endpoint.channel, device, {.patience = Seconds{5}});
    });
  } catch (const RunError& caught) {
    error = caught.what();
  }
  EXPECT_THAT(error, testing::MatchesRegex(
                         "cannot make an NCCL communicator as rank [01] of 2: invalid usage .run "
                         "with NCCL_DEBUG=WARN for details. .Duplicate GPU detected : rank [01] "
                         "and rank [01] both on CUDA device 0."));
  test::expect_clean();
}

// Rank 1 prepares and leaves; rank 0 leaves while its collective is under way.
TEST_F(NcclFailure, OfWhoLeavesWithACollectiveInFlightIsAnAbort) {
  for (const bool aborts : {false, true}) {
    test::begin(Order::random, 2);
    run_as_threads(2, 1, Seconds{5}, [&](const Endpoint& endpoint) {
      const Case& c = small_ring();
      CudaDevice device(endpoint.channel.rank());
      DeviceBucket bucket(device, test::bucket_of(c, endpoint.channel.rank()), c.type);
      NcclExecutor executor(endpoint.channel, device, {});
      const Collective collective = executor.prepare(c.schedule, c.elements, c.type);
      if (endpoint.channel.rank() == 1) return;
      static_cast<void>(executor.start(collective, bucket.view(), bucket.ready()));
      if (!aborts) return;
      executor.abort();
      std::string error = "none";
      try {
        static_cast<void>(executor.start(collective, bucket.view(), Token()));
      } catch (const RunError& caught) {
        error = caught.what();
      }
      EXPECT_EQ(error, "cannot all-reduce as rank 0 of 2: it was aborted");
    });
    test::expect_clean();
  }
}

TEST_F(NcclFailure, ThatNcclFindsLaterIsFoundByWhoWaits) {
  test::begin(Order::latest, 1);
  EXPECT_THROW(
      test::run_nccl_job(2, {},
                         [](const NcclRank& r) {
                           const Case& c = small_ring();
                           DeviceBucket bucket(r.device, test::bucket_of(c, r.rank()), c.type);
                           const Collective collective =
                               r.executor.prepare(c.schedule, c.elements, c.type);
                           if (r.rank() == 1) cuda_on_host::nccl::fail_rank(1, 2);
                           const std::string want =
                               r.rank() == 1 ? "cannot all-reduce as rank 1 of 2: unhandled "
                                               "system error (run with NCCL_DEBUG=INFO for "
                                               "details) (the test made rank 1 fail)"
                                             : "cannot all-reduce as rank 0 of 2: remote process "
                                               "exited or there was a network error (rank 1 has "
                                               "left)";
                           std::string error = "none";
                           try {
                             wait_for(r.executor.start(collective, bucket.view(), bucket.ready()),
                                      Seconds{20}, "all-reduce");
                           } catch (const RunError& caught) {
                             error = caught.what();
                           }
                           EXPECT_EQ(error, want);
                           // Every later call says the same.
                           EXPECT_THROW(r.executor.progress(), RunError);
                           throw RunError("go on", "the test ends here");
                         }),
      RunError);
  test::expect_clean();
}

}  // namespace
}  // namespace paceline::runtime
