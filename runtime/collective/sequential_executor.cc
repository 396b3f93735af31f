// Tests: tests/agreement/sequential_executor_agreement_test.cc.
#include "runtime/collective/sequential_executor.h"

#include <fmt/core.h>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/enumerate.h"

namespace paceline::runtime {

void execute_sequentially(const models::Schedule& schedule, std::span<std::vector<float>> buffers) {
  if (buffers.size() != to_size(schedule.ranks())) {
    throw InputError(fmt::format("{} buffers for {} ranks", buffers.size(), schedule.ranks()),
                     "give one for each rank");
  }
  const std::size_t elements = buffers.front().size();
  for (const auto& buffer : buffers) {
    if (buffer.size() != elements)
      throw InputError("buffers of different sizes", "give every rank as many elements");
  }
  struct Message {
    models::Transfer<std::int64_t> transfer;
    std::vector<float> payload;
  };
  const models::Span<std::int64_t> bucket{0, static_cast<std::int64_t>(elements)};
  std::vector<Message> messages;
  for (int step = 0; step < schedule.steps(); ++step) {
    messages.clear();
    models::for_each_transfer(schedule, step, bucket, [&](const models::Transfer<std::int64_t>& t) {
      const auto first = buffers[to_size(t.from)].begin() + t.span.begin;
      messages.push_back({t, std::vector<float>(first, first + t.span.size)});
    });
    for (const Message& m : messages) {
      float* target = buffers[to_size(m.transfer.to)].data() + m.transfer.span.begin;
      for (std::size_t i = 0; i < m.payload.size(); ++i)
        target[i] = m.transfer.reduce ? target[i] + m.payload[i] : m.payload[i];
    }
  }
}

}  // namespace paceline::runtime
