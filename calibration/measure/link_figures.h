// What the links of the cluster that a job runs on can carry, and how messages share them:
// microbenchmarks between its ranks. All ranks call the same functions at the same point. Samples
// are rank 0's, and empty on others.
#pragma once

#include <cstdint>
#include <vector>

#include "calibration/measure/node_map.h"
#include "models/base/units.h"
#include "runtime/transport/transport.h"

namespace paceline::calibration {

// The time of a byte where messages follow each other without a pause, while every rank (one of each
// node) sends to the next and receives from the one before: the slope from an early message of
// `bytes` to a late one of a stream. There is one sample for each of `repetitions`.
struct StreamTimes {
  bool between_nodes = true;
  int ranks = 2;
  std::vector<SecondsPerByte> samples;
};

[[nodiscard]] std::vector<StreamTimes> measure_streams(runtime::Transport& transport,
                                                       const NodeMap& nodes, std::int64_t bytes,
                                                       int repetitions);

// How long a message each way at once takes between two ranks while the others are idle, over one
// way (half of a round trip): 1 on a link that is full duplex, 2 on one that is half duplex. There
// is one sample for each of `repetitions`.
struct BothWaysTimes {
  bool between_nodes = true;
  std::vector<double> samples;
};

[[nodiscard]] std::vector<BothWaysTimes> measure_both_ways(runtime::Transport& transport,
                                                           const NodeMap& nodes, std::int64_t bytes,
                                                           int repetitions);

// The time of a byte from a node to one under another leaf switch, in streams as above, while all
// nodes of both send and receive, until the last of them is done. Empty where no two leaves can be
// paired (NodeMap::leaders_across). There is one sample for each of `repetitions`, which end early,
// after three, when rank 0's `time` is over.
[[nodiscard]] std::vector<SecondsPerByte> measure_uplink(runtime::Transport& transport,
                                                         const NodeMap& nodes, std::int64_t bytes,
                                                         int repetitions, Seconds time);

// The time from one message of this many bytes of a rank to its next, where many are sent in a row
// from one node to another (or, on one node, from rank 0 to rank 1). There is one sample for each of
// `repetitions`.
struct MessageGaps {
  std::int64_t bytes = 1;
  std::vector<Seconds> samples;
};

[[nodiscard]] MessageGaps measure_message_gap(runtime::Transport& transport, const NodeMap& nodes,
                                              std::int64_t bytes, int repetitions);

// How two messages of this many bytes that a rank posts at once, to ranks on two other nodes (or, on
// one node, two other ranks), share its link. At 0 the first is there as soon as it would be alone;
// at 1 it is as late as the second. The median of `repetitions`, clamped to 0 to 1; 0 if there are no
// three ranks to try. On all ranks.
[[nodiscard]] double measure_fairness(runtime::Transport& transport, const NodeMap& nodes,
                                      std::int64_t bytes, int repetitions);

// How much longer a large exchange takes when all ranks of a node share its NIC than when one has
// it to itself, for each byte that passes the NIC: 1 where it is shared without loss. 0 where no
// node has several ranks, or there is one node. On all ranks.
[[nodiscard]] double measure_nic_sharing(runtime::Transport& transport, const NodeMap& nodes,
                                         std::int64_t bytes);

}  // namespace paceline::calibration
