// The messages of a schedule as a list, for the exporters: the one reader that materialises them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "models/collective/enumerate.h"

namespace paceline::models {

// One message that is not empty.
struct Message {
  int step = 0;
  int from = 0;
  int to = 0;
  int index = 0;   // among the messages from the same to the same rank in the step
  int serial = 0;  // and in all steps
  bool reduce = false;
  Span<std::int64_t> span;
};

// Beyond this a file takes more memory and time than its readers have.
inline constexpr std::int64_t most_exported_messages = 3'000'000;

// All messages of a bucket of `units` elements or chunks, step by step, in a step in the order of
// for_each_transfer. Throws InputError where there are more than `most`.
[[nodiscard]] std::vector<Message> messages(const Schedule& schedule, std::int64_t units,
                                            std::int64_t most = most_exported_messages);

// The messages of one rank, each kind in the order of the list.
struct RankMessages {
  std::vector<Message> sent;
  std::vector<Message> received;
};
[[nodiscard]] std::vector<RankMessages> by_rank(const std::vector<Message>& list, int ranks);

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
