// The values that a strategy leaves to the user or to the planner.
#pragma once

#include <optional>

#include "models/base/units.h"
#include "models/plan/dispatch.h"
#include "models/plan/servers.h"

namespace paceline::models {

// A runtime that is driven by thresholds takes these. Sizes are in bytes on the wire. A strategy
// ignores those that it does not take.
struct Thresholds {
  Bytes fusion{0};  // theta: a bucket is closed as soon as it holds this much; 0 fuses nothing
  std::optional<Bytes> first_fusion = {};  // the same for the first bucket, where it differs
  Bytes hybrid{0};     // eta: a Hybrid sends buckets up to this size by its `small` algorithm
  int group_size = 1;  // k: ranks of a group
  int segments = 0;    // pieces of a bucket in a pipelined tree; 0 takes the algorithm's default
  int rings = 0;       // disjoint rings of multi-ring; 0 takes the algorithm's default
  int servers = 1;     // servers among the ranks
  ServerPlacement placement = ServerPlacement::balanced;
  int streams = 1;         // buckets that may be in flight at the same time
  Bytes partition{0};      // tensors that are larger are cut into parts of this size; 0 cuts none
  Dispatch dispatch = {};  // strategies of other systems; `through_host`: all strategies
  bool reshard = true;     // of sharded strategies: are parameters dropped after a forward pass?
  int factors_every = 1;   // iterations from one refresh of K-FAC's factors to the next
  bool own_machines = false;  // servers of other systems: do they have nodes of their own?
  ServerTransport transport =
      ServerTransport::tcp;  // servers of other systems: by what they are reached

  bool operator==(const Thresholds&) const = default;
};

}  // namespace paceline::models
