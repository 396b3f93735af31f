// What a message costs on a cluster: alpha, beta and gamma of each link, as plain numbers.
//
// This is the cluster as the engines see it. Figures become numbers here, at one of three
// bounds: as stated, or with every interval at its fast or slow end.
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

// The bound of the figures at which a prediction is made: each figure as stated, or the end of its
// interval that makes iterations fast or slow.
enum class Bound { stated, fast, slow };

struct LinkCost {
  Seconds alpha;        // per message, one way
  SecondsPerByte beta;  // per byte sent, each direction
};

// The time of a message of n bytes beyond that of its bytes on the wire, for n from `from` on, is
// alpha + n per_byte.
struct MessageAlpha {
  Bytes from;
  Seconds alpha;
  SecondsPerByte per_byte;  // may be negative
};

// The transport that runs the schedules, as it was calibrated (models/profile/profile.h).
struct TransportCost {
  models::MessageSizes message_sizes;
  Seconds message_gap;      // least time between the starts of two messages of a rank
  Bytes message_header{0};  // bytes that a message between nodes adds to its own
  bool is_fair = false;     // messages to several receivers leave in turns, not one after the other
  // alpha between nodes where every rank has a message on its way (`nic`), and where one message is
  // alone (nic_alone). If empty: nic.alpha, and the same as `nic`. They differ where hosts share
  // more than links, such as the processors of a machine that emulates them.
  std::vector<MessageAlpha> nic = {};
  std::vector<MessageAlpha> nic_alone = {};
  // Kernels of the runtime on one rank, in seconds for each byte of the wire type; 0 if not known.
  // The runtime casts buckets to the wire type and back, packs nothing, and reads what has arrived
  // once more, to check it.
  SecondsPerByte copy{0};
  SecondsPerByte cast_fp16{0};
  SecondsPerByte cast_bf16{0};
};

// What messages between ranks of one node share besides ports (models::Host). A beta of 0 does not
// bind. Messages that leave the node do not pass it: the NIC's bandwidth has in it what they lose.
struct HostCost {
  bool staged = false;  // each message goes through the host's memory
  int sockets = 1;
  SecondsPerByte crossing{0};  // out of each socket, and into each
  SecondsPerByte memory{0};    // of a node's memory, for each byte of a staged message
  int switches = 0;
  SecondsPerByte uplink{0};  // of each PCIe switch, each direction
};

struct CommunicationCost {
  int ranks_per_node = 1;  // g
  bool by_nvlink = false;  // what joins the ranks of a node
  LinkCost intra = {};     // a rank's port into its node
  LinkCost nic = {};       // one NIC and the path from it to the NIC of another node
  int nics_per_node = 1;
  models::NicUse nic_use = models::NicUse::striped;
  SecondsPerByte gamma = {};  // for each byte that is reduced
  models::IntraKind intra_kind = models::IntraKind::switched;
  models::Fabric fabric = {};
  // If not empty, rank r sits in slot slots[r]. Else `placement` says where it sits.
  std::vector<int> slots = {};
  // The share of its NICs' bandwidth that each slow node still has, by the node's number.
  std::map<int, double> slow_nodes = {};
  std::shared_ptr<const models::Platform> platform = {};  // replaces nodes, NICs and fabric
  models::Placement placement = models::Placement::node_major;
  int nodes = 0;  // how many nodes the fabric joins; 0: those that the ranks fill
  std::optional<TransportCost> transport = {};
  std::optional<HostCost> host = {};  // only where nodes are switches

  // alpha of a message between nodes, by its size, without the hops after the first switch.
  [[nodiscard]] Seconds nic_alpha(Bytes bytes) const;
  // The same for a message that is on its way alone. It is at most nic_alpha().
  [[nodiscard]] Seconds nic_alpha_alone(Bytes bytes) const;
};

// Figures of `profile`, which may be null, take the place of the cluster's for a job of `ranks`.
// With a calibrated transport, the alpha of a message between nodes is the time that the profile's
// exchange of the nearest number of ranks took beyond that of the bytes on the NIC. The
// oversubscription of a fat tree's leaf switches is the profile's, where it has one; levels above
// keep theirs.
//
// gamma is the profile's rate of FP32 reductions, where it has one. Else it is 0 for a device that
// reduces while it receives, unless the profile has a transport, which then reduces, and for other
// devices the time to read two operands and write one at the device's memory bandwidth times its
// memory efficiency: 3 bytes moved for each byte reduced.
//
// Where the intra link's bandwidth depends on the ranks in use, it is that of the node that has most
// of the job's `ranks` (0: all of the cluster's). It is then an effective rate of a rank's port, the
// same for all schedules: a ring's, which is what was measured. A cluster without NICs has the intra
// link's cost in place of theirs.
//
// Listed slots are renumbered as far as links do not tell them apart (models/cluster/alike_slots.h).
//
// Where ranks of a node cannot reach each other, a port has 1/1.4 of the lane (link_rules.h), and a
// byte of a message takes four of the memory's bandwidth: it is written by one device and read by
// the other, while both have messages the other way, and DMA reaches about half of the peak. So a
// ring of p ranks gets min(lane / 1.4, crossing, memory bandwidth / 4p, uplink / ranks behind it);
// engines find that, and what other schedules get, from the links (routes.h). A bandwidth of the
// intra link that a profile has was measured with all of that in it, and takes its place.
[[nodiscard]] CommunicationCost communication_cost(const models::Cluster& cluster,
                                                   const models::Profile* profile, Bound bound,
                                                   int ranks = 0);

// A figure of which more is faster, such as a bandwidth or an efficiency, at a bound.
template <class Q>
[[nodiscard]] Q rate_at(const Figure<Q>& figure, Bound bound) {
  if (bound == Bound::stated) return figure.value;
  return bound == Bound::fast ? figure.high : figure.low;
}

// A figure of which more is slower, such as a time, at a bound.
template <class Q>
[[nodiscard]] Q cost_at(const Figure<Q>& figure, Bound bound) {
  if (bound == Bound::stated) return figure.value;
  return bound == Bound::fast ? figure.low : figure.high;
}

// Bytes per second that a memory-bound kernel moves.
[[nodiscard]] BytesPerSecond effective_memory_bandwidth(const models::Device& device, Bound bound);

}  // namespace paceline::simulator
