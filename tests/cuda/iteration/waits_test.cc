// Every wait of a short training is taken out in turn, under every policy and strategy: waits of streams
// for events, and those by which the host learns that something is done. Either two operations touch the
// same memory then and nothing orders them, or the wait is redundant, because other waits order all that
// touch the same memory (tests/support/cuda_on_host/trace.h). The check for races has to report exactly
// the first kind.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tests/cuda/iteration/rig.h"

namespace paceline::test {
namespace {

using cuda_on_host::JudgedWait;
using cuda_on_host::WithoutWait;
using models::Overlap;

// Rank 1's waits are taken out. It is alone on its device.
constexpr int watched = 1;

void begin_eager() {
  test::begin(cuda_on_host::Order::eager, 1);
  cuda_on_host::pass_over_after(1e-3);
}

// The waits of a job, which is right with all of them.
std::vector<JudgedWait> waits_of(const Iterations& job) {
  begin_eager();
  cuda_on_host::record_waits(watched);
  static_cast<void>(job.run());
  std::vector<JudgedWait> waits = cuda_on_host::judged_waits();
  test::expect_clean();
  return waits;
}

std::vector<Way> policies() {
  std::vector<Way> ways;
  for (const Overlap overlap : {Overlap::wait_free, Overlap::none, Overlap::double_buffered})
    for (const int streams : {1, 2})
      for (const Travel travel : {Travel::nccl, Travel::staged})
        for (const bool by_cudnn : {false, true})
          for (const bool replay : {false, true})
            ways.push_back({{.name = "policy",
                             .wire = NumberType::fp16,
                             .overlap = overlap,
                             .streams = streams},
                            travel,
                            by_cudnn,
                            replay});
  return ways;
}

// Every strategy that the runtime runs, on what runs it: MPI's own all-reduce needs MPI.
std::vector<Way> strategies() {
  std::vector<Way> ways;
  for (const models::Strategy& strategy : models::strategy_catalogue()) {
    if (strategy.library() == models::Library::open_mpi) continue;
    for (const Travel travel : {Travel::nccl, Travel::staged}) {
      if (strategy.library() && travel == Travel::staged) continue;
      ways.push_back({{.name = "strategy",
                       .wire = NumberType::fp32,
                       .overlap = strategy.overlap,
                       .strategy = std::string(strategy.name),
                       .ranks = 4,
                       .group = strategy.takes_group() ? 2 : 1,
                       .streams = 2},
                      travel,
                      false,
                      true});
    }
  }
  return ways;
}

class Waits : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_on_host::nccl::present()) GTEST_SKIP() << "is a property of the doubles";
  }

  // Each wait is needed, or others order all that it orders and that touches the same memory.
  static void judge(const std::vector<Way>& ways) {
    std::map<WithoutWait, std::size_t> all;
    for (const Way& way : ways) {
      SCOPED_TRACE(described(way));
      std::map<WithoutWait, std::size_t> sums;
      for (const JudgedWait& wait : waits_of(Iterations(way))) ++sums[wait.without];
      const std::size_t redundant = sums[WithoutWait::is_covered] + sums[WithoutWait::is_same];
      EXPECT_GT(sums[WithoutWait::races], 20U);
      EXPECT_GT(redundant, 5U);  // a weight of the last iteration is read by nobody, for one
      for (const auto& [without, count] : sums) all[without] += count;
      if (HasFailure()) return;
    }
    fmt::print(
        "{} ways: {} waits are needed, {} order nothing that touches the same memory, {} "
        "nothing at all\n",
        ways.size(), all[WithoutWait::races], all[WithoutWait::is_covered],
        all[WithoutWait::is_same]);
  }
};

TEST_F(Waits, AreNeededOrRedundantUnderEveryPolicy) {
  judge(policies());
}

TEST_F(Waits, AreNeededOrRedundantUnderEveryStrategy) {
  judge(strategies());
}

// The check for races sees a wait that is missing: of a stream or of the host, by whichever executor.
TEST_F(Waits, AreMissedByTheCheckForRaces) {
  for (const Travel travel : {Travel::nccl, Travel::staged}) {
    const Iterations job({{.name = "missed", .wire = NumberType::fp16}, travel});
    const std::vector<JudgedWait> waits = waits_of(job);
    const auto needed = std::ranges::count(waits, WithoutWait::races, &JudgedWait::without);
    std::ptrdiff_t missed = 0;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      begin_eager();
      cuda_on_host::overlook_wait(watched, static_cast<int>(i) + 1);
      static_cast<void>(job.run());
      missed += cuda_on_host::races().empty() ? 0 : 1;
    }
    // Two threads of a rank wait, so that a number is not the same wait in every run.
    EXPECT_GT(missed, needed / 2);
  }
}

}  // namespace
}  // namespace paceline::test
