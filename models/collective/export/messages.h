// The messages of a schedule as lists, rank by rank, for the exporters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "models/collective/schedule.h"
#include "models/collective/span.h"

namespace paceline::models {

// A transfer that is not empty: other tools send it as one message.
struct Message {
  int step = 0;
  int from = 0;
  int to = 0;
  int index = 0;   // among the messages of this step from the same rank to the same rank
  int serial = 0;  // among the messages of all steps from the same rank to the same rank
  bool reduce = false;
  Span<std::int64_t> span;

  bool operator==(const Message&) const = default;
};

// Files with more messages take more memory and time than the tools that read them have.
inline constexpr std::int64_t most_exported_messages = 3'000'000;

// Throws InputError where a bucket of `units` elements or chunks takes more messages than `most`.
void check_exported_messages(const Schedule& schedule, std::int64_t units,
                             std::int64_t most = most_exported_messages);

// The messages of a bucket of `units` elements or chunks that one rank sends and receives, step by
// step, each in the order of for_each_transfer.
struct RankMessages {
  std::vector<Message> sent;
  std::vector<Message> received;
};
[[nodiscard]] RankMessages messages_of_rank(const Schedule& schedule, int rank, std::int64_t units);

// Calls visit(sent, received), as spans, for each step in which the rank takes part.
template <class F>
void for_each_step(const RankMessages& rank, F&& visit) {
  std::span<const Message> sent(rank.sent);
  std::span<const Message> received(rank.received);
  const auto take = [](std::span<const Message>& from, int step) {
    std::size_t count = 0;
    while (count < from.size() && from[count].step == step) ++count;
    const auto taken = from.first(count);
    from = from.subspan(count);
    return taken;
  };
  while (!sent.empty() || !received.empty()) {
    const int step = sent.empty()       ? received.front().step
                     : received.empty() ? sent.front().step
                                        : std::min(sent.front().step, received.front().step);
    const auto out = take(sent, step);
    visit(out, take(received, step));
  }
}

}  // namespace paceline::models
