#include "tests/support/cuda_on_host/trace.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <unordered_map>
#include <utility>

#include "tests/support/cuda_on_host/memory.h"
#include "tests/support/cuda_on_host/state.h"

namespace cuda_on_host {
namespace {

// How many events of each stream happen before, by the number of the stream.
using Counts = std::vector<std::uint32_t>;

struct After {
  std::size_t earlier = 0;  // the place of its event in the trace
  int wait = 0;             // by which it comes before; 0: by none
};
// What was issued, or what the host did.
struct Event {
  std::size_t stream = 0;    // the number of its stream; the host has none
  std::uint32_t number = 0;  // in its stream, from 1; 0: the host's
  std::vector<After> after = {};
  std::vector<Access> accesses = {};
  std::string what = {};
  std::optional<std::size_t> host_before = {};  // the last of the host's own events before this one

  [[nodiscard]] bool is_the_hosts() const { return number == 0; }
};

struct Wait {
  std::string waiter;
  std::size_t awaited = 0;  // the place of its event
  std::size_t place = 0;    // its own, or that of the next event
};

// Two events that touch the same memory, one of them writing.
struct Conflict {
  std::size_t earlier = 0;
  std::size_t later = 0;
};

struct Trace {
  int device = -1;  // whose waits are counted
  int overlooked = 0;
  int waits_counted = 0;
  bool is_recorded = false;
  std::vector<Event> events;
  std::vector<Wait> waits;
  std::optional<std::size_t> last_of_host;                // the place of its last event
  std::map<const void*, std::size_t> streams;             // their numbers
  std::vector<std::uint32_t> issued;                      // in each stream
  std::unordered_map<std::uint64_t, std::size_t> places;  // of operations, by age
  std::vector<After> after;            // of the operation that is about to be issued
  std::set<const std::byte*> touched;  // allocations that operations touch
};

Trace& trace() {
  static Trace* const one = new Trace;
  return *one;
}

void raise(Counts& counts, const Counts& by) {
  for (std::size_t s = 0; s < counts.size(); ++s) counts[s] = std::max(counts[s], by[s]);
}

// What happens before each event from the first of them on, itself included, without the wait. `with` is
// what happens before those that come earlier.
std::vector<Counts> happens_before(std::size_t first, int without,
                                   const std::vector<Counts>& with) {
  const Trace& t = trace();
  std::vector<Counts> counts;
  counts.reserve(t.events.size() - first);
  const std::optional<std::size_t> before = t.events[first].host_before;
  Counts host = before ? with[*before] : Counts(t.issued.size());
  for (std::size_t i = first; i < t.events.size(); ++i) {
    const Event& event = t.events[i];
    Counts own = host;
    for (const After& order : event.after) {
      if (order.wait != 0 && order.wait == without) continue;
      raise(own, order.earlier < first ? with[order.earlier] : counts[order.earlier - first]);
    }
    if (event.is_the_hosts())
      host = own;
    else
      own[event.stream] = event.number;
    counts.push_back(std::move(own));
  }
  return counts;
}

bool is_before(const Event& earlier, const Counts& counts_of_later) {
  return counts_of_later[earlier.stream] >= earlier.number;
}

// Those that the run orders.
std::vector<Conflict> conflicts(const std::vector<Counts>& counts) {
  const Trace& t = trace();
  struct Touch {
    Access access;
    std::size_t event;
  };
  std::map<const std::byte*, std::vector<Touch>> touches;  // by allocation
  std::vector<Conflict> found;
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    const Event& event = t.events[i];
    for (const Access& access : event.accesses) {
      std::vector<Touch>& earlier = touches[allocation_of(access.first)];
      for (const Touch& touch : earlier) {
        const bool meets = access.first < touch.access.first + touch.access.bytes &&
                           touch.access.first < access.first + access.bytes;
        if (!meets || touch.event == i || !(access.writes || touch.access.writes)) continue;
        if (is_before(t.events[touch.event], counts[i])) found.push_back({touch.event, i});
      }
    }
    if (event.is_the_hosts()) continue;  // the host comes before what it issues later
    for (const Access& access : event.accesses)
      touches[allocation_of(access.first)].push_back({access, i});
  }
  return found;
}

// How many of the first events of each stream touch memory.
std::vector<Counts> works_of_streams() {
  const Trace& t = trace();
  std::vector<Counts> works;
  for (const std::uint32_t issued : t.issued) works.emplace_back(issued + 1);
  for (const Event& event : t.events)
    if (!event.is_the_hosts() && !event.accesses.empty()) works[event.stream][event.number] = 1;
  for (Counts& of_stream : works)
    for (std::size_t i = 1; i < of_stream.size(); ++i) of_stream[i] += of_stream[i - 1];
  return works;
}

void record_of_host(Event event) {
  Trace& t = trace();
  event.host_before = std::exchange(t.last_of_host, t.events.size());
  t.events.push_back(std::move(event));
}

std::string described(const Wait& wait) {
  const Trace& t = trace();
  std::size_t work = wait.awaited;
  while (work > 0 && (t.events[work].accesses.empty() || t.events[work].is_the_hosts() ||
                      t.events[work].stream != t.events[wait.awaited].stream))
    --work;
  return wait.waiter + " waits for " + t.events[work].what;
}

}  // namespace

int count_wait(int device) {
  Trace& t = trace();
  return device == t.device ? ++t.waits_counted : 0;
}

void overlook_wait(int device, int number) {
  trace().device = device;
  trace().overlooked = number;
}
bool is_overlooked(int device, int wait) {
  return wait != 0 && device == trace().device && wait == trace().overlooked;
}

void record_waits(int device) {
  trace() = {};
  trace().device = device;
  trace().is_recorded = true;
}

bool records_touches(const std::byte* first) {
  return trace().is_recorded && trace().touched.contains(allocation_of(first));
}

void record_order(const Operation& earlier, int wait) {
  Trace& t = trace();
  if (!t.is_recorded) return;
  const auto at = t.places.find(earlier.age);
  if (at == t.places.end()) return;  // from before the trace
  t.after.push_back({at->second, wait});
}

void record_issue(const Operation& operation) {
  Trace& t = trace();
  if (!t.is_recorded) return;
  const auto [stream, is_new] = t.streams.emplace(operation.stream, t.issued.size());
  if (is_new) t.issued.push_back(0);
  for (const Access& access : operation.accesses)
    if (access.bytes > 0) t.touched.insert(allocation_of(access.first));
  if (operation.wait > 0)
    t.waits.push_back({name_of(*operation.stream), t.after.empty() ? 0 : t.after.front().earlier,
                       t.events.size()});
  t.places[operation.age] = t.events.size();
  t.events.push_back({.stream = stream->second,
                      .number = ++t.issued[stream->second],
                      .after = std::move(t.after),
                      .accesses = operation.accesses,
                      .what = operation.what,
                      .host_before = t.last_of_host});
  t.after.clear();
}

void record_host_wait(const Operation& operation, int wait) {
  Trace& t = trace();
  if (!t.is_recorded) return;
  const auto at = t.places.find(operation.age);
  if (wait > 0)
    t.waits.push_back({"the host", at == t.places.end() ? 0 : at->second, t.events.size()});
  if (at != t.places.end()) record_of_host({.after = {{at->second, wait}}});
}

void record_touch(const Access& access) {
  Trace& t = trace();
  if (!t.is_recorded || !t.touched.contains(allocation_of(access.first))) return;
  record_of_host({.accesses = {access}});
}

std::vector<JudgedWait> judged_waits() {
  const Trace& t = trace();
  if (t.events.empty()) return {};
  const std::vector<Counts> with = happens_before(0, 0, {});
  const std::vector<Conflict> all_conflicts = conflicts(with);  // by the later event
  const std::vector<Counts> works = works_of_streams();
  std::vector<JudgedWait> judged;
  for (std::size_t i = 0; i < t.waits.size(); ++i) {
    JudgedWait wait{.what = described(t.waits[i])};
    const std::size_t first = t.waits[i].place;
    if (first < t.events.size()) {
      const std::vector<Counts> without = happens_before(first, static_cast<int>(i) + 1, with);
      const bool orders =
          std::ranges::any_of(std::views::iota(first, t.events.size()), [&](std::size_t event) {
            if (t.events[event].accesses.empty()) return false;
            for (std::size_t s = 0; s < works.size(); ++s)
              if (works[s][without[event - first][s]] != works[s][with[event][s]]) return true;
            return false;
          });
      const auto later = std::ranges::lower_bound(all_conflicts, first, {}, &Conflict::later);
      const bool races = std::any_of(later, all_conflicts.end(), [&](const Conflict& conflict) {
        return !is_before(t.events[conflict.earlier], without[conflict.later - first]);
      });
      wait.without = races    ? WithoutWait::races
                     : orders ? WithoutWait::is_covered
                              : WithoutWait::is_same;
    }
    judged.push_back(std::move(wait));
  }
  return judged;
}

void forget_trace() {
  trace() = {};
}

}  // namespace cuda_on_host
