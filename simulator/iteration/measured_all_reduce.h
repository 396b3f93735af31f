// All-reduces that were measured on a cluster, and the pace of its links that follows from them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "models/base/units.h"
#include "models/cluster/cluster.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/cost/pace.h"

namespace paceline::simulator {

// Or another collective.
struct MeasuredAllReduce {
  int ranks = 2;
  Bytes bytes;
  Seconds time;
};

// What tells the pace of a job: all-reduces of its own kind, inside a node or between nodes, those with the
// number of ranks nearest to the job's by ratio, and of these the one of fewest and the one of most
// bytes. A job between nodes falls back to those inside a node, whose pace it has there.
[[nodiscard]] std::vector<MeasuredAllReduce> telling(const std::vector<MeasuredAllReduce>& measured,
                                                     const models::Cluster& cluster, int ranks);

// The least time that a collective of these ranks and bytes can take, at twice the bandwidth that the
// links have at the given cost: each rank has to send as many bytes as an all-reduce or a broadcast has,
// whether ranks or switches add them up, and (p-1)/p of them in the others, over its links inside the
// node, or over its node's NICs where the ranks are on several nodes. 0 for a platform, whose links have
// no such place. Latency is left out. Bytes are counted as nccl-tests does, of an all-to-all those of a rank's
// buffer.
[[nodiscard]] Seconds least_time(const MeasuredAllReduce& of, const CommunicationCost& cost,
                                 models::Collective collective = models::Collective::all_reduce);

// The pace at which `time` gives what was measured, to 1e-6: of two all-reduces the smaller one
// tells the latency and the larger one the transfer; one alone tells what it consists of mostly. A
// factor is between 1/64 and 64, whatever was measured. Nothing measured leaves all as it is.
using PacedTime = std::function<Seconds(const Pace& pace, const MeasuredAllReduce& of)>;
[[nodiscard]] Pace pace_of(const std::vector<MeasuredAllReduce>& telling, bool between_nodes,
                           const PacedTime& time);

}  // namespace paceline::simulator
