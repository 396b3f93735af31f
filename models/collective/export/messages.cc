// Tests: tests/models/export_{goal,msccl,svg}_test.cc.
#include "models/collective/export/messages.h"

#include <fmt/format.h>

#include <unordered_map>

#include "models/base/error.h"

namespace paceline::models {

std::vector<Message> messages(const Schedule& schedule, std::int64_t units, std::int64_t most) {
  std::vector<Message> list;
  std::unordered_map<std::uint64_t, int> in_step;  // (from, to) -> messages so far
  std::unordered_map<std::uint64_t, int> in_all;
  for (int step = 0; step < schedule.steps(); ++step) {
    in_step.clear();
    for_each_transfer(
        schedule, step, Span<std::int64_t>{0, units}, [&](const Transfer<std::int64_t>& t) {
          if (t.span.size == 0) return;
          if (static_cast<std::int64_t>(list.size()) >= most) {
            throw InputError(
                fmt::format("the schedule has more than {} messages", most),
                "export fewer ranks or segments: other tools read every message of the file");
          }
          const std::uint64_t pair =
              (static_cast<std::uint64_t>(t.from) << 32) | static_cast<std::uint32_t>(t.to);
          list.push_back({step, t.from, t.to, in_step[pair]++, in_all[pair]++, t.reduce, t.span});
        });
  }
  return list;
}

std::vector<RankMessages> by_rank(const std::vector<Message>& list, int ranks) {
  std::vector<RankMessages> all(static_cast<std::size_t>(ranks));
  for (const Message& m : list) {
    all[static_cast<std::size_t>(m.from)].sent.push_back(m);
    all[static_cast<std::size_t>(m.to)].received.push_back(m);
  }
  return all;
}

}  // namespace paceline::models
