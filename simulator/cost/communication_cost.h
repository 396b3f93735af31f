// What a message costs on a cluster: alpha, beta and gamma of each link, as plain numbers.
//
// This is the cluster as the engines see it. Figures become numbers here, at one of three
// readings: as stated, or with every interval at its fast or slow end.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "models/base/figure.h"
#include "models/base/units.h"
#include "models/cluster/cluster.h"
#include "models/cluster/platform.h"
#include "models/collective/message_sizes.h"
#include "models/profile/profile.h"

namespace paceline::simulator {

// Which end of the figures' intervals a prediction reads.
enum class Reading { stated, fast, slow };

struct LinkCost {
  Seconds alpha;        // per message, one way
  SecondsPerByte beta;  // per byte sent, each direction
};

// What a message of a size takes beyond its bytes on the wire, from `from` bytes on:
// alpha + n per_byte.
struct MessageAlpha {
  Bytes from;
  Seconds alpha;
  SecondsPerByte per_byte;  // of a message: may be negative
};

// The transport that runs the schedules, as it was calibrated (models/profile/profile.h).
struct TransportCost {
  models::MessageSizes message_sizes;
  Seconds message_gap;      // from one message of a rank to its next
  Bytes message_header{0};  // of a NIC's and its path's time, beside the message's own
  bool is_fair = false;     // messages to several receivers leave in turns, not one after the other
  // In place of nic.alpha, where every rank has a message on its way, and where there is no other;
  // empty: nic.alpha, and as `nic`. They differ where hosts share more than links, such as the
  // processors of a machine that emulates them.
  std::vector<MessageAlpha> nic = {};
  std::vector<MessageAlpha> nic_alone = {};
  std::vector<MessageAlpha> all_reduce = {};  // the library's own; empty: it was not calibrated
  int all_reduce_ranks = 0;                   // that it was calibrated on, the nearest to the job's
  // Of the runtime's kernels on one rank, per byte of the wire type; 0 where they were not
  // measured. It casts buckets to the wire type and back, packs nothing, and looks at what arrived
  // once.
  SecondsPerByte copy{0};
  SecondsPerByte cast_fp16{0};
  SecondsPerByte cast_bf16{0};
};

struct CommunicationCost {
  int ranks_per_node = 1;  // g
  LinkCost intra = {};     // a rank's port into its node
  LinkCost nic = {};       // one NIC, and the path from it to another node's
  int nics_per_node = 1;
  models::NicUse nic_use = models::NicUse::striped;
  SecondsPerByte gamma = {};  // per byte reduced
  models::IntraKind intra_kind = models::IntraKind::switched;
  models::Fabric fabric = {};
  // If not empty, rank r sits in slot slots[r]; else as `placement` says.
  std::vector<int> slots = {};
  // NICs of these nodes have only this share of the bandwidth.
  std::map<int, double> slow_nodes = {};
  std::shared_ptr<const models::Platform> platform = {};  // in place of nodes, NICs and fabric
  models::Placement placement = models::Placement::node_major;
  int nodes = 0;  // that the fabric joins; 0: those that the ranks fill
  std::optional<TransportCost> transport = {};

  // alpha between nodes of a message of so many bytes, without further hops.
  [[nodiscard]] Seconds nic_alpha(Bytes bytes) const;
  // Of one that is on its way alone: at most that.
  [[nodiscard]] Seconds nic_alpha_alone(Bytes bytes) const;
  // Of the library's own all-reduce. Throws InputError if the profile does not have it.
  [[nodiscard]] Seconds library_all_reduce(Bytes bytes) const;
};

// Figures of `profile` (may be null) take the place of the cluster's, for a job of `ranks`. With a
// calibrated transport, what a message between nodes takes beyond its bytes on the NIC is what the
// profile's exchange of the nearest number of ranks took beyond them. The oversubscription of a fat
// tree's leaf switches is the profile's, where it has one; levels above keep theirs. gamma is the
// profile's rate of FP32 reductions, where it has one, or the time to read two operands and write
// one at the device's memory bandwidth times its memory efficiency: 3 bytes moved for each byte
// reduced.
[[nodiscard]] CommunicationCost communication_cost(const models::Cluster& cluster,
                                                   const models::Profile* profile, Reading reading,
                                                   int ranks = 0);

// A figure at a reading. `faster_if_larger` says which end of the interval is the fast one.
template <class Q>
[[nodiscard]] Q read_figure(const Figure<Q>& figure, Reading reading, bool faster_if_larger) {
  if (reading == Reading::stated) return figure.value;
  return (reading == Reading::fast) == faster_if_larger ? figure.high : figure.low;
}

// Bytes per second that a memory-bound kernel moves.
[[nodiscard]] BytesPerSecond effective_memory_bandwidth(const models::Device& device,
                                                        Reading reading);

}  // namespace paceline::simulator
