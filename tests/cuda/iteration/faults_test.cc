// Whatever call fails in a training on CUDA devices, whichever rank makes it: the job ends in one line, or
// as it does without the fault; nothing hangs, and nothing is left. Functions are those that the job
// calls: of the CUDA runtime, graphs among them, of NCCL from the rendezvous on, and of cuDNN.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cuda/iteration/rig.h"
#include "tests/support/cuda_on_host/cudnn_control.h"

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

// A few calls of each function: the first, the last, and some between.
constexpr long of_each = 5;

class Faults : public ::testing::TestWithParam<Way> {};

TEST_P(Faults, EndInOneLine) {
  if (!cuda_on_host::nccl::present()) GTEST_SKIP() << "only the doubles fail on demand";
  // Who waits for a rank that has failed and does not know gives up.
  const Iterations job(GetParam(), Seconds{2});
  static_cast<void>(job.run());  // plans are made once
  begin_with("", 0);
  const std::vector<float> expected = job.run().weights;
  const std::vector<std::string> functions = cuda_on_host::called_functions();
  std::vector<long> calls;
  for (const std::string& function : functions) calls.push_back(cuda_on_host::calls(function));
  int failures = 0;
  int runs = 0;
  for (std::size_t f = 0; f < functions.size(); ++f) {
    std::vector<long> numbers;
    for (long i = 0; i < of_each; ++i) numbers.push_back(1 + i * (calls[f] - 1) / (of_each - 1));
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    for (const long number : numbers) {
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
      // What cuDNN did not give back when it was asked to stays.
      const bool gives_back =
          functions[f].starts_with("cudnn") && functions[f].find("Destroy") != std::string::npos;
      if (!gives_back) EXPECT_EQ(of_cudnn(), before);
    }
  }
  fmt::print("{} functions, {} faults, {} ended the job\n", functions.size(), runs, failures);
  EXPECT_GT(failures, runs / 3);
}

Way way(Travel travel, bool by_cudnn, int streams) {
  return {{.name = "faults", .wire = NumberType::fp16, .streams = streams}, travel, by_cudnn};
}

INSTANTIATE_TEST_SUITE_P(Ways, Faults,
                         ::testing::Values(way(Travel::nccl, true, 1), way(Travel::nccl, false, 2),
                                           way(Travel::staged, true, 2)));

}  // namespace
}  // namespace paceline::test
