// Tests: tests/models/schedule_test.cc.
#include "models/collective/combinators.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::models {

namespace {

// Checks that all are over the same ranks. Drops those without steps, but keeps one if all are so.
void check_parts(std::vector<Schedule>& parts) {
  PACELINE_ASSERT(!parts.empty(), "a combination has parts");
  const int ranks = parts.front().ranks();
  for (const Schedule& part : parts) {
    PACELINE_ASSERT(part.ranks() == ranks, "parts of a combination are over the same ranks");
  }
  if (parts.size() > 1) {
    const Schedule first = parts.front();
    std::erase_if(parts, [](const Schedule& part) { return part.steps() == 0; });
    if (parts.empty()) parts.push_back(first);
  }
}

// Whether no rank is in two groups, or twice in one. A progression never meets its own copies, as
// they are blocks or interleaved.
bool are_disjoint(const Groups& groups, int ranks) {
  if (groups.members.size() == 1) return true;
  std::vector<bool> is_taken(to_size(ranks), false);
  for (int group = 0; group < groups.count; ++group) {
    for (const Progression& p : groups.members) {
      for (int i = 0; i < p.count; ++i) {
        auto taken = is_taken[to_size(group * groups.stride + p.first + i * p.stride)];
        if (taken) return false;
        taken = true;
      }
    }
  }
  return true;
}

// Returns (x, y) with a x + b y = gcd(a, b).
std::pair<int, int> bezout(int a, int b) {
  if (b == 0) return {1, 0};
  const auto [x, y] = bezout(b, a % b);
  return {y, x - a / b * y};
}

}  // namespace

Schedule sequence(std::vector<Schedule> parts) {
  check_parts(parts);
  return parts.size() == 1 ? parts.front() : Schedule(Sequence{std::move(parts)});
}

Schedule within(int ranks, Groups groups, Schedule inner, Share share) {
  PACELINE_ASSERT(inner.ranks() == groups.size(), "the inner schedule is over one group");
  PACELINE_ASSERT(groups.count >= 1, "there is a group");
  PACELINE_ASSERT(groups.count == 1 || groups.stride >= 1, "groups are apart");
  for (const Progression& p : groups.members) {
    PACELINE_ASSERT(p.count >= 1 && (p.count == 1 || p.stride >= 1), "a progression goes up");
    const bool as_blocks = (p.count - 1) * p.stride < groups.stride;
    const bool interleaved = groups.stride * groups.count <= p.stride;
    PACELINE_ASSERT(groups.count == 1 || as_blocks || interleaved,
                    "groups are blocks or interleaved");
    const int last = (groups.count - 1) * groups.stride + p.first + (p.count - 1) * p.stride;
    PACELINE_ASSERT(p.first >= 0 && last < ranks, "groups lie within the ranks");
  }
  PACELINE_ASSERT(are_disjoint(groups, ranks), "groups do not overlap");
  return Schedule(Within{ranks, std::move(groups), std::move(inner), share});
}

Schedule on_part(int index, int of, Schedule inner) {
  PACELINE_ASSERT(index >= 0 && index < of, "a part is one of its parts");
  return Schedule(OnPart{index, of, std::move(inner)});
}

Schedule parallel(std::vector<Schedule> parts) {
  check_parts(parts);
  return parts.size() == 1 ? parts.front() : Schedule(Parallel{std::move(parts)});
}

Schedule pipelined(int segments, Schedule inner) {
  PACELINE_ASSERT(segments >= 1, "a pipeline has segments");
  if (segments == 1 || inner.steps() == 0) return inner;
  return Schedule(Pipelined{segments, std::move(inner)});
}

Schedule renumbered(int block, int multiplier, int offset, Schedule inner) {
  PACELINE_ASSERT(block >= 1 && inner.ranks() % block == 0, "blocks divide the ranks");
  PACELINE_ASSERT(std::gcd(multiplier, block) == 1, "a renumbering is one to one");
  if (inner.steps() == 0) return inner;
  const auto reduced = [block](int value) { return (value % block + block) % block; };
  const int factor = reduced(multiplier);
  const auto [inverse, ignored] = bezout(factor, block);
  return Schedule(Renumbered{block, factor, reduced(offset), reduced(inverse), std::move(inner)});
}

Schedule mirrored(Schedule inner) {
  const int ranks = inner.ranks();
  return renumbered(ranks, -1, ranks - 1, std::move(inner));
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
