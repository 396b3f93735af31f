// Tests: tests/runtime/thread_transport_test.cc.
#include "runtime/transport/patience.h"

#include <fmt/core.h>

#include <chrono>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::runtime {

Patience::Patience(Seconds patience, int ranks) : patience_(patience), heard_(to_size(ranks), 0) {}

void Patience::expect(int peer, bool sends, Mark& mark) {
  const std::int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::steady_clock::now().time_since_epoch())
                               .count();
  const std::uint64_t heard = heard_[to_size(peer)];
  if (mark.since_ns == 0 || mark.heard != heard) {
    mark = {now, heard};
  } else if (static_cast<double>(now - mark.since_ns) * 1e-9 > patience_.value()) {
    throw_lost(peer, sends, fmt::format("nothing came from it for {:g} s", patience_.value()));
  }
}

void throw_lost(int peer, bool sends, std::string_view why) {
  throw LostRank(fmt::format("{} rank {}", sends ? "send to" : "receive from", peer),
                 std::string(why));
}

}  // namespace paceline::runtime
