// Tests: tests/runtime/executor_test.cc, tests/agreement/executor_engine_agreement_test.cc.
#include "models/collective/message_sizes.h"

#include <algorithm>

namespace paceline::models {

std::int64_t largest_message_bytes(std::int64_t bucket_bytes, int ranks,
                                   const MessageSizes& sizes) {
  return std::clamp(bucket_bytes / ranks / 4, sizes.smallest_bytes, sizes.largest_bytes);
}

}  // namespace paceline::models
