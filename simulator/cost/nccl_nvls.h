// What NCCL expects of an all-reduce in which NVSwitches reduce and multicast: NVLS inside a node,
// and NVLSTree, a tree between nodes whose switches do so (src/graph/tuning.cc, ncclTopoTuneModel;
// src/graph/search.cc; key "NCCL tuning" in docs/sources.md). Beside nccl_model.h, as plain numbers.
//
// With g GPUs in each of N nodes there are C = min(g, 32) channels of `intra` GB/s through the switch and of
// `inter` GB/s between nodes, each the fastest of the search's speeds that ports and NICs carry:
//   bus bandwidth = C min(2 e (C-1)/C intra, k inter, most a channel)
// e is 0.85 on Hopper and 0.74 on Blackwell; k is 2 between two nodes and 1 between more; the second
// and third bound are NVLSTree's. latency = 25 us + 2 floor(log2 N) (14 us and twice what the network's plugin
// tells).
#pragma once

#include <optional>
#include <string_view>

#include "models/base/units.h"
#include "models/cluster/cluster.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::simulator {

// hwLatencies of NVLSTree between nodes with Simple, its only protocol.
inline constexpr Seconds nccl_nvls_network_step{14e-6};

struct NcclNvls {
  int channels = 0;
  double port_gbps = 0;     // of a GPU, as NCCL counts it
  double intra_gbps = 0;    // of a channel: the first bound
  double network_gbps = 0;  // of a channel, by the NICs; 0 on one node
  double inter_gbps = 0;    // of a channel: the lesser of the other two; 0 on one node
  int network_steps = 0;    // one after the other, 14 us each
  Seconds latency;

  // "NVLS", between nodes "NVLSTree".
  [[nodiscard]] std::string_view name() const { return inter_gbps > 0 ? "NVLSTree" : "NVLS"; }
  // The time that NCCL expects for n bytes.
  [[nodiscard]] Seconds time(int ranks, Bytes bytes) const {
    return latency + transfer(ranks, bytes);
  }
  // Whether NCCL expects less of it than of the best ring or tree, and so chooses it.
  [[nodiscard]] bool is_chosen(const NcclModel& model, Bytes bytes) const;

  // Expected for n bytes, where links have these shares of the bandwidth that NCCL counts.
  [[nodiscard]] Seconds transfer(int ranks, Bytes bytes, double intra_share = 1,
                                 double inter_share = 1) const;
};

// Nothing where NCCL has none: for collectives other than all-reduces (where it allows NVLS for all-gathers and
// reduce-scatters, on one node, it expects less of rings; NVIDIA/nccl#1083), before Hopper, without NVSwitches, with fewer than three GPUs in a
// node, or not as many in each; nor between nodes over TCP, whose plugins are run without
// (NCCL_NVLS_ENABLE=0 of Google's GPUDirect-TCPX and -TCPXO, from memory).
[[nodiscard]] std::optional<NcclNvls> nccl_nvls(const NcclModel& model,
                                                const models::Cluster& cluster);

}  // namespace paceline::simulator
