// Tests: tests/runtime/executor_test.cc, tests/agreement/executor_engine_agreement_test.cc.
#include "models/collective/message_sizes.h"

#include <algorithm>

#include "models/collective/enumerate.h"

namespace paceline::models {
namespace {

bool adds_in_step(const Schedule& schedule, int step) {
  bool adds = false;
  for_each_transfer(schedule, step, Span<double>{0, 1},
                    [&](const Transfer<double>& transfer) { adds = adds || transfer.reduce; });
  return adds;
}

}  // namespace

std::int64_t largest_message_bytes(const Schedule& schedule, std::int64_t bucket_bytes,
                                   const MessageSizes& sizes) {
  if (schedule.steps() == 1 && sizes.ahead_bytes == 0 && !adds_in_step(schedule, 0))
    return most_message_bytes;
  return std::clamp(bucket_bytes / schedule.ranks() / 4, sizes.smallest_bytes,
                    std::min(sizes.largest_bytes, most_message_bytes));
}

}  // namespace paceline::models
