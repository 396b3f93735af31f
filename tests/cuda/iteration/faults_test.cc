// Whatever call fails in a training on CUDA devices, whichever rank makes it: the job ends in one line, or
// as it does without the fault; nothing hangs, and nothing is left. Functions are those that the job
// calls: of the CUDA runtime, graphs among them, of NCCL from the rendezvous on, and of cuDNN.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/cuda/iteration/rig.h"
#include "tests/support/cuda_on_host/cudnn_control.h"
#include "tests/support/thoroughness.h"

namespace paceline::test {
namespace {

// An error that the function's library has: cudaErrorUnknown, ncclSystemError, an internal error.
int error_of_library(const std::string& function) {
  return function.starts_with("cuda") ? 999 : function.starts_with("nccl") ? 2 : 4000;
}

void begin_with(const std::string& function, long call) {
  test::begin(cuda_on_host::Order::eager, 1);
  cuda_on_host::pass_over_after(1e-3);
  if (call > 0) cuda_on_host::fail(function, static_cast<int>(call), error_of_library(function));
}

int of_cudnn() {
  return cuda_on_host::cudnn::live_handles() + cuda_on_host::cudnn::live_descriptors();
}

// The numbers from 1 to `calls`, or `most` of them: the first, the last, and some between.
std::vector<long> numbers_of(long calls, long most) {
  const long count = std::min(calls, most);
  std::vector<long> numbers = {1};
  for (long i = 1; i < count; ++i) numbers.push_back(1 + i * (calls - 1) / (count - 1));
  return numbers;
}

// Fails as many calls of each function, one in each run of the job.
void expect_one_line(const Way& way, long of_each) {
  // Who waits for a rank that has failed and does not know gives up.
  const Iterations job(way, Seconds{2});
  static_cast<void>(job.run());  // plans are made once
  begin_with("", 0);
  const std::vector<float> expected = job.run().weights;
  const std::vector<std::string> functions = cuda_on_host::called_functions();
  std::vector<long> calls;
  for (const std::string& function : functions) calls.push_back(cuda_on_host::calls(function));
  int failures = 0;
  int runs = 0;
  for (std::size_t f = 0; f < functions.size(); ++f) {
    for (const long number : numbers_of(calls[f], of_each)) {
      SCOPED_TRACE(fmt::format("call {} of {}", number, functions[f]));
      begin_with(functions[f], number);
      ++runs;
      const int before = of_cudnn();
      try {
        EXPECT_EQ(job.run().weights, expected);
      } catch (const RunError& error) {
        ++failures;
        EXPECT_THAT(error.what(), ::testing::MatchesRegex("cannot [^\n]*"));
      }
      EXPECT_THAT(cuda_on_host::leaks(), ::testing::IsEmpty());
      EXPECT_EQ(cuda_on_host::nccl::live_communicators(), 0);
      // A handle whose destruction fails stays alive, because the double refused to give it back.
      const bool gives_back =
          functions[f].starts_with("cudnn") && functions[f].find("Destroy") != std::string::npos;
      if (!gives_back) EXPECT_EQ(of_cudnn(), before);
    }
  }
  fmt::print("{} functions, {} faults, {} ended the job\n", functions.size(), runs, failures);
  EXPECT_GT(failures, runs / 3);
}

class Faults : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!cuda_on_host::nccl::present()) GTEST_SKIP() << "only the doubles fail on demand";
  }
};
TEST_P(Faults, EndInOneLine) {
  expect_one_line(GetParam(), cases(2L, std::numeric_limits<long>::max()));
}

Way way(Travel travel, bool by_cudnn, int streams) {
  return {{.name = "faults", .wire = NumberType::fp16, .streams = streams}, travel, by_cudnn};
}

const auto ways = ::testing::Values(way(Travel::nccl, true, 1), way(Travel::nccl, false, 2),
                                    way(Travel::staged, true, 2));
INSTANTIATE_TEST_SUITE_P(Ways, Faults, ways);

}  // namespace
}  // namespace paceline::test
