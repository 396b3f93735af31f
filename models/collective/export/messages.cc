// Tests: tests/models/export_{goal,msccl}_test.cc.
#include "models/collective/export/messages.h"

#include <fmt/core.h>

#include <unordered_map>

#include "models/base/error.h"
#include "models/collective/enumerate.h"

namespace paceline::models {

void check_exported_messages(const Schedule& schedule, std::int64_t units, std::int64_t most) {
  std::int64_t count = 0;
  for (int step = 0; step < schedule.steps() && count <= most; ++step) {
    for_each_transfer(schedule, step, Span<std::int64_t>{0, units},
                      [&](const Transfer<std::int64_t>& t) { count += t.span.size > 0 ? 1 : 0; });
  }
  if (count <= most) return;
  throw InputError(fmt::format("the schedule has more than {} messages", most),
                   "export fewer ranks or segments: other tools read every message of the file");
}

RankMessages messages_of_rank(const Schedule& schedule, int rank, std::int64_t units) {
  RankMessages found;
  const Span<std::int64_t> bucket{0, units};
  // Numbers the messages of one direction by their peer.
  struct Numbers {
    std::unordered_map<int, int> in_step;
    std::unordered_map<int, int> in_all;
  };
  Numbers sends;
  Numbers receives;
  const auto add = [](std::vector<Message>& list, Numbers& numbers, int step, int peer,
                      const Transfer<std::int64_t>& t) {
    if (t.span.size == 0) return;
    list.push_back(
        {step, t.from, t.to, numbers.in_step[peer]++, numbers.in_all[peer]++, t.reduce, t.span});
  };
  for (int step = 0; step < schedule.steps(); ++step) {
    sends.in_step.clear();
    receives.in_step.clear();
    for_each_send(schedule, rank, step, bucket,
                  [&](const Transfer<std::int64_t>& t) { add(found.sent, sends, step, t.to, t); });
    for_each_receive(schedule, rank, step, bucket, [&](const Transfer<std::int64_t>& t) {
      add(found.received, receives, step, t.from, t);
    });
  }
  return found;
}

}  // namespace paceline::models
