// Decides how long a rank waits for a silent peer.
//
// A transport tells it which messages have come, and asks it about those that have not. The clock
// is read once in 256 misses, so that polling costs almost nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "models/base/to_size.h"
#include "models/base/units.h"
#include "runtime/transport/lost_rank.h"

namespace paceline::runtime {

class Patience {
 public:
  // The wait for one message: when it began, and how many messages its peer had completed by then.
  struct Mark {
    std::int64_t since_ns = 0;  // 0 if it was not yet waited for
    std::uint64_t heard = 0;
  };

  Patience(Seconds patience, int ranks);

  // A message to or from the peer is done.
  void heard(int peer) { ++heard_[to_size(peer)]; }
  // A message is not done. Looks at the clock in one call of 256. Throws as expect() does.
  void missed(int peer, bool sends, Mark& mark) {
    if (++misses_ % 256 == 0) expect(peer, sends, mark);
  }
  // A message is not done. Looks at the clock. Throws RunError that names the peer if nothing has
  // come from it for as long as the patience.
  void expect(int peer, bool sends, Mark& mark);

 private:
  Seconds patience_;
  std::vector<std::uint64_t> heard_;
  std::uint32_t misses_ = 0;
};

}  // namespace paceline::runtime
