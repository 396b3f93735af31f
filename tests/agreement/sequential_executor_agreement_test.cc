// Every schedule, run by the sequential executor (runtime/collective/sequential_executor.h) on the
// buffers of all ranks in one thread, is the sum over the ranks. Inputs are small integers scaled
// by powers of two, so that no order of addition rounds and equality is exact. All contributions
// differ, so that none can stand in for another.
//
// The executor that runs between ranks is held against the executor engine in
// executor_engine_agreement_test.cc, and against this one in tests/runtime/executor_test.cc.
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "runtime/collective/sequential_executor.h"
#include "tests/support/schedules.h"

namespace paceline::runtime {
namespace {

TEST(SequentialExecutorAgreement, EveryScheduleIsTheSequentialSum) {
  for (int p = 1; p <= 17; ++p) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      for (const std::size_t elements :
           {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{13}, std::size_t{1000}}) {
        std::vector<std::vector<float>> buffers(static_cast<std::size_t>(p),
                                                std::vector<float>(elements));
        std::vector<float> sum(elements, 0.0F);
        for (std::size_t r = 0; r < buffers.size(); ++r) {
          for (std::size_t i = 0; i < elements; ++i) {
            buffers[r][i] =
                static_cast<float>((r * 31 + i * 7) % 1024) * 0.25F + static_cast<float>(r);
            sum[i] += buffers[r][i];
          }
        }
        execute_sequentially(schedule, buffers);
        for (const auto& buffer : buffers)
          EXPECT_EQ(buffer, sum) << name << " p=" << p << " elements=" << elements;
      }
    }
  }
}

TEST(SequentialExecutor, RefusesBuffersThatDoNotFit) {
  std::vector<std::vector<float>> too_few(3, std::vector<float>(4));
  EXPECT_THROW(execute_sequentially(models::ring_all_reduce(4), too_few), InputError);
  std::vector<std::vector<float>> unequal = {{1, 2}, {1}};
  EXPECT_THROW(execute_sequentially(models::ring_all_reduce(2), unequal), InputError);
}

}  // namespace
}  // namespace paceline::runtime
