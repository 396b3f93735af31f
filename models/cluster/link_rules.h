// Bandwidths of links that follow from what they are, and from how many ranks use them.
#pragma once

#include "models/base/figure.h"
#include "models/base/units.h"
#include "models/cluster/cluster.h"

namespace paceline::models {

inline constexpr int default_tcp_flows = 2;

// What a rank's collective gets of a NIC over TCP, assumed: the least of what processors copy and of
// 0.95 of the line rate, which is what frames of 1500 bytes leave to the data.
//
// Processors: a flow carries 13.7 Gbit/s (one on a virtual machine with 25 Gbit/s,
// bytedance/byteps#29; NVIDIA/nccl-tests#83 says that sockets add up), and `flows` of them this many
// times that. With 4 or more ranks a node, which share the processors that copy, they carry 0.7 of
// that, 0.54 to 0.97: of what the rule gives one rank, such nodes reached 13.6 of 23.75 Gbit/s on a
// line of 25 (nccl-tests#83), 14.7 and 22.4 of 27.4 on one of 32 (NVIDIA/nccl#209) and 40 of 41.1 on
// one of 100 (NVIDIA/nccl#450), of which 0.7 is the geometric mean. On a line of 10 Gbit/s the line
// is the limit.
//
// The interval is from half the flows, at most 0.85 of the line rate (facebookincubator/gloo#21), to
// twice as many; with 4 or more ranks a node, from 1 / 2.1 to 2.1 times, both being unknown at once.
[[nodiscard]] Figure<BytesPerSecond> tcp_bandwidth(const Figure<BytesPerSecond>& line_rate,
                                                   int flows, int ranks_per_node);

// What RDMA gets of a NIC that reaches no device's memory, assumed: 0.48 of the line rate, 0.42 to
// 0.67 (5.7 to 6.1 GB/s of EDR, 16 GB/s of HDR: NVIDIA/nccl#465, #243, #412).
[[nodiscard]] Figure<BytesPerSecond> bandwidth_without_gpudirect(
    const Figure<BytesPerSecond>& line_rate);

// The bandwidth of a NIC that stands away from the cluster's devices, of what it has beside them (one or
// several PCIe switches, 0.96 of its line rate): 0.83 at the root of their processor (0.54 to 1), 0.62
// across its roots (0.47 to 0.89), 0.52 across processors (0.31 to 0.83). Where nobody says how far it
// is, 0.83 (0.44 to 1), which holds all of these; but a node with a NIC for each device is built with
// them side by side. Assumed, from staged and
// direct rates: 0.83 on GH200 (NVIDIA/nccl#1579), 0.5 to 0.67 of EDR and HDR (#465, #412), 0.75 after a
// change of the BIOS (NVIDIA/nccl-tests#293). Unchanged without such NICs: of processors, over TCP, and
// where GPUDirect is off, which has a rule of its own.
[[nodiscard]] Figure<BytesPerSecond> bandwidth_at_distance(const Cluster& cluster);

// What each direction of a lane gets while messages through the host's memory go both ways,
// assumed: 1/1.4 of it, 1/1.45 to 1/1.35 (21 GB/s one way and 30 GB/s both ways together between two
// RTX 4090 on PCIe 4, NVIDIA/nccl#814).
[[nodiscard]] Figure<BytesPerSecond> staged_bandwidth(const Figure<BytesPerSecond>& lane);

// The bandwidth of a link inside a node of which this many ranks are in use: that of the largest entry
// of bandwidth_by_ranks up to it, of the smallest where none is, and else `bandwidth`.
[[nodiscard]] const Figure<BytesPerSecond>& bandwidth_for(const Link& link, int ranks_in_use);

// Whether messages between ranks of a node pass what the cluster's `host` says of sockets, switches
// and memory. Those over NVLink with peer access do not: it joins devices past their processors, as
// the cube mesh of a DGX-1 does across its sockets (nvidia-smi topo -m in DLPerf's report: one or two
// NVLinks from each GPU of one socket to one of the other). Where NVLink joins fewer devices than a
// node has, the link's bandwidth_by_ranks says what more of them get.
[[nodiscard]] bool passes_host(const Cluster& cluster);

// The ranks on the node that has most of a job's, at least 1; 0 ranks mean all of the cluster's.
[[nodiscard]] int most_ranks_on_a_node(const Cluster& cluster, int ranks);

}  // namespace paceline::models
