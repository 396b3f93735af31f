// Tests: tests/models/schedule_test.cc.
#include "models/collective/combinators.h"

#include <algorithm>

#include "models/base/error.h"

namespace paceline::models {

Schedule sequence(std::vector<Schedule> parts) {
  PACELINE_ASSERT(!parts.empty(), "a sequence has parts");
  const int ranks = parts.front().ranks();
  for (const Schedule& part : parts) {
    PACELINE_ASSERT(part.ranks() == ranks, "parts of a sequence are over the same ranks");
  }
  if (parts.size() > 1) {
    const Schedule first = parts.front();
    std::erase_if(parts, [](const Schedule& part) { return part.steps() == 0; });
    if (parts.empty()) parts.push_back(first);
  }
  return parts.size() == 1 ? parts.front() : Schedule(Sequence{std::move(parts)});
}

Schedule within(int ranks, Groups groups, Schedule inner, Share share) {
  PACELINE_ASSERT(inner.ranks() == groups.size(), "the inner schedule is over one group");
  PACELINE_ASSERT(groups.count >= 1, "there is a group");
  PACELINE_ASSERT(groups.count == 1 || groups.stride >= 1, "groups are apart");
  for (const Progression& p : groups.members) {
    const bool as_blocks = (p.count - 1) * p.stride < groups.stride;
    const bool interleaved = groups.stride * groups.count <= p.stride;
    PACELINE_ASSERT(groups.count == 1 || as_blocks || interleaved,
                    "groups are blocks or interleaved");
    const int last = (groups.count - 1) * groups.stride + p.first + (p.count - 1) * p.stride;
    PACELINE_ASSERT(p.first >= 0 && last < ranks, "groups lie within the ranks");
  }
  return Schedule(Within{ranks, std::move(groups), std::move(inner), share});
}

Schedule on_part(int index, int of, Schedule inner) {
  PACELINE_ASSERT(index >= 0 && index < of, "a part is one of its parts");
  return Schedule(OnPart{index, of, std::move(inner)});
}

Groups blocks(int ranks, int size) {
  PACELINE_ASSERT(size >= 1 && ranks % size == 0, "blocks divide the ranks");
  return Groups{.members = {{0, size, 1}}, .count = ranks / size, .stride = size};
}

Groups across_blocks(int ranks, int size) {
  PACELINE_ASSERT(size >= 1 && ranks % size == 0, "blocks divide the ranks");
  return Groups{.members = {{0, ranks / size, size}}, .count = size, .stride = 1};
}

Groups block_masters(int ranks, int size) {
  PACELINE_ASSERT(size >= 1 && ranks % size == 0, "blocks divide the ranks");
  return Groups{.members = {{0, ranks / size, size}}, .count = 1, .stride = 0};
}

}  // namespace paceline::models
