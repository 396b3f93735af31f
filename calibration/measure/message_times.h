// What messages cost on the cluster that a job runs on, by microbenchmarks between its ranks. All
// ranks call the same functions at the same point; samples are rank 0's, and empty on others.
//
// Messages travel as the executor's do: posted on one stream of the transport that will run the
// plan, received first, and waited for as it waits.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit/piecewise.h"
#include "calibration/measure/progress.h"
#include "models/profile/profile.h"
#include "runtime/transport/transport.h"

namespace paceline::calibration {

// Which ranks share a node: those that say the same of it.
struct NodeMap {
  std::vector<int> node;  // of each rank, numbered from 0 by their first rank
  // Nodes under one switch, in order; 0: all. What is measured of a NIC then stays under a switch,
  // for an oversubscribed uplink is not the NIC's.
  int nodes_per_leaf = 0;
  [[nodiscard]] int nodes() const;
  // Ranks of a node, ascending.
  [[nodiscard]] std::vector<int> ranks_of(int node) const;
  // The first rank of each node.
  [[nodiscard]] std::vector<int> leaders() const;
  // Those under the switch of a rank's node, if it is the first rank of its node; all of them where
  // a switch has one node only. Empty for other ranks, and for a node that is alone under the last.
  [[nodiscard]] std::vector<int> leaders_beside(int rank) const;
  // A first rank of its node and the one in the same place of the other leaf of its pair (leaves 0
  // and 1, 2 and 3, ...), ascending. Empty for other ranks, where a switch has one node or all, and
  // where one of the two leaves is not full.
  [[nodiscard]] std::vector<int> leaders_across(int rank) const;
};

// `host` is this rank's own, such as its host name.
[[nodiscard]] NodeMap find_nodes(runtime::Transport& transport, const std::string& host);

// Time by message size of one pattern.
struct MessageTimes {
  models::CurveKind kind = models::CurveKind::point_to_point;
  bool between_nodes = true;
  int ranks = 2;  // that took part
  std::vector<Sample> samples;
};

struct MessageRequest {
  std::vector<std::int64_t> sizes;  // bytes, ascending, at least 1
  Seconds time{20};  // rank 0's counts; for all patterns, but each size is tried 3 times at least
  // Of the library's all-reduce, bytes, ascending; empty: `sizes`. Those that are larger than the
  // last of `sizes` end before the first that would not fit in what is left of the time.
  std::vector<std::int64_t> all_reduce_sizes = {};
  Progress progress = {};  // called before each size of a pattern
};

// Point to point (half of a round trip between two ranks, the others wait) and exchange (each of a
// set of ranks sends to the next and receives from the one before, all at once, step after step)
// between nodes, with one rank on each; and within a node, where there are several ranks on the
// first one. An exchange's sample is the time of one step of several in a row.
//
// Then the all-reduce of the library under the transport, where it has one, over the first 2, 4, 8,
// ... ranks and over all: from one's end to the next one's on rank 0, in a row. That is what each
// adds to an iteration: where ranks are no power of two, some are done long before others, and are
// as much ahead in the next.
[[nodiscard]] std::vector<MessageTimes> measure_messages(runtime::Transport& transport,
                                                         const NodeMap& nodes,
                                                         const MessageRequest& request);

// What a byte takes where messages follow each other without a pause, in the same exchange: the
// slope from an early message of `bytes` to a late one of a stream. One sample for each of
// `repetitions`.
struct StreamTimes {
  bool between_nodes = true;
  int ranks = 2;
  std::vector<SecondsPerByte> samples;
};

[[nodiscard]] std::vector<StreamTimes> measure_streams(runtime::Transport& transport,
                                                       const NodeMap& nodes, std::int64_t bytes,
                                                       int repetitions);

// How long a message each way at once takes between two ranks while the others are idle, over one
// way (half of a round trip): 1 on a link that is full duplex, 2 on one that is half duplex. One
// sample for each of `repetitions`.
struct BothWaysTimes {
  bool between_nodes = true;
  std::vector<double> samples;
};

[[nodiscard]] std::vector<BothWaysTimes> measure_both_ways(runtime::Transport& transport,
                                                           const NodeMap& nodes, std::int64_t bytes,
                                                           int repetitions);

// What a byte takes from a node to one under another leaf switch, in streams as above, while all
// nodes of both send and receive: until the last of them is done. Empty where no two leaves can be
// paired (NodeMap::leaders_across). One sample for each of `repetitions`, which end early, after
// three, when rank 0's `time` is over.
[[nodiscard]] std::vector<SecondsPerByte> measure_uplink(runtime::Transport& transport,
                                                         const NodeMap& nodes, std::int64_t bytes,
                                                         int repetitions, Seconds time);

// From one message of so many bytes of a rank to its next, where many are sent in a row from one
// node to another (or, on one node, from rank 0 to rank 1): one sample for each of `repetitions`.
struct MessageGaps {
  std::int64_t bytes = 1;
  std::vector<Seconds> samples;
};

[[nodiscard]] MessageGaps measure_message_gap(runtime::Transport& transport, const NodeMap& nodes,
                                              std::int64_t bytes, int repetitions);

// How two messages of so many bytes that a rank posts at once, to ranks on two other nodes (or, on
// one node, two other ranks), share its link: 0, the first is there as soon as it is alone; 1, as
// late as the second. The median of `repetitions`, clamped; 0 if there are no three to try. On all
// ranks.
[[nodiscard]] double measure_fairness(runtime::Transport& transport, const NodeMap& nodes,
                                      std::int64_t bytes, int repetitions);

// How much longer a large exchange takes when all ranks of a node share its NIC than when one has
// it to itself, for each byte that passes the NIC: 1 where it is shared without loss. 0 where no
// node has several ranks, or there is one node. On all ranks.
[[nodiscard]] double measure_nic_sharing(runtime::Transport& transport, const NodeMap& nodes,
                                         std::int64_t bytes);

}  // namespace paceline::calibration
