#include "tests/support/cuda_on_host/happens_before.h"

#include <algorithm>
#include <map>

#include "tests/support/cuda_on_host/memory.h"

namespace cuda_on_host {
namespace {

struct Seen {
  Access access;
  const void* stream;
  std::uint64_t number;
  std::string what;
};

struct Table {
  Clock host;                                          // what the host has waited for
  std::map<const std::byte*, std::vector<Seen>> seen;  // by allocation
  std::vector<std::string> races;
};

Table& table() {
  static Table* const one = new Table;  // outlives what static objects of tests give back
  return *one;
}

bool overlap(const Access& a, const Access& b) {
  return a.first < b.first + b.bytes && b.first < a.first + a.bytes;
}
bool covers(const Access& a, const Access& b) {
  return a.first <= b.first && b.first + b.bytes <= a.first + a.bytes;
}
bool reaches(const Clock& clock, const Seen& seen) {
  const auto at = clock.find(seen.stream);
  return at != clock.end() && at->second >= seen.number;
}

void report(const std::string& what, bool writes, const Seen& other) {
  constexpr std::size_t most = 1000;  // a program without any wait has one for each pair
  if (table().races.size() >= most) return;
  std::string race = "race: " + what;
  race += writes ? " writes" : " reads";
  race += " what " + other.what;
  race += other.access.writes ? " writes" : " reads";
  race += ", not ordered";
  table().races.push_back(std::move(race));
}

}  // namespace

void join(Clock& clock, const Operation& earlier) {
  for (const auto& [stream, number] : earlier.clock) {
    const auto waited = table().host.find(stream);
    if (waited != table().host.end() && waited->second >= number) continue;
    std::uint64_t& mine = clock[stream];
    mine = std::max(mine, number);
  }
}

void check_races(const Operation& operation) {
  // All are compared before one is remembered: an operation may read what it writes.
  for (const Access& access : operation.accesses) {
    const auto group = table().seen.find(allocation_of(access.first));
    if (group == table().seen.end()) continue;
    for (const Seen& seen : group->second) {
      if (!(access.writes || seen.access.writes) || !overlap(access, seen.access)) continue;
      if (reaches(operation.clock, seen)) continue;
      report(operation.what, access.writes, seen);
    }
  }
  for (const Access& access : operation.accesses) {
    if (access.bytes == 0) continue;
    std::vector<Seen>& group = table().seen[allocation_of(access.first)];
    std::erase_if(group, [&](const Seen& seen) {
      return covers(access, seen.access) && (access.writes || !seen.access.writes) &&
             reaches(operation.clock, seen);
    });
    group.push_back({access, operation.stream, operation.number, operation.what});
  }
}

void host_waited_for(const Operation& operation) {
  Clock& host = table().host;
  for (const auto& [stream, number] : operation.clock) {
    std::uint64_t& mine = host[stream];
    mine = std::max(mine, number);
  }
  for (auto group = table().seen.begin(); group != table().seen.end();) {
    std::erase_if(group->second, [&](const Seen& seen) { return reaches(host, seen); });
    group = group->second.empty() ? table().seen.erase(group) : std::next(group);
  }
}

bool host_has_waited_for(const Operation& operation) {
  const auto at = table().host.find(operation.stream);
  return at != table().host.end() && at->second >= operation.number;
}

bool host_touches(const Access& access, const std::string& what) {
  const auto group = table().seen.find(allocation_of(access.first));
  if (group == table().seen.end()) return true;
  bool ordered = true;
  for (const Seen& seen : group->second) {
    if (!(access.writes || seen.access.writes) || !overlap(access, seen.access)) continue;
    report(what, access.writes, seen);
    ordered = false;
  }
  return ordered;
}

std::vector<Access> pending_accesses(const std::byte* first, std::size_t bytes) {
  std::vector<Access> accesses;
  const auto group = table().seen.find(allocation_of(first));
  if (group == table().seen.end()) return accesses;
  for (const Seen& seen : group->second)
    if (overlap(seen.access, {first, bytes, false})) accesses.push_back(seen.access);
  return accesses;
}

void forget_accesses(const std::byte* first, std::size_t bytes) {
  for (auto& [base, group] : table().seen)
    std::erase_if(group, [&](const Seen& seen) {
      return overlap(seen.access, {first, bytes, false});
    });
}

const std::vector<std::string>& found_races() {
  return table().races;
}

std::size_t known_accesses() {
  std::size_t count = 0;
  for (const auto& [base, group] : table().seen) count += group.size();
  return count;
}

void forget_all_accesses() {
  table() = Table{};
}

}  // namespace cuda_on_host
