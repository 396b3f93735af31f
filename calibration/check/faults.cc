// Tests: tests/calibration/check_test.cc.
#include "calibration/check/faults.h"

#include <fmt/core.h>

#include <utility>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/cluster/catalog_parts.h"
#include "models/cluster/link_rules.h"

namespace paceline::calibration {
namespace {

// The link of PCI Express that GPUs of an architecture have.
std::string_view pcie_of(int compute_capability) {
  constexpr int hopper = 90;
  constexpr int ampere = 80;
  if (compute_capability >= hopper) return "pcie5-x16";
  return compute_capability >= ampere ? "pcie4-x16" : "pcie3-x16";
}

class Faults {
 public:
  Faults(const models::Cluster& cluster, const simulator::PredictionOptions& options)
      : cluster_(cluster), options_(options) {}

  void between_nodes() {
    const int nics = cluster_.nics_per_node;
    for (const auto& [id, used] :
         {std::pair{FaultId::one_nic, 1}, {FaultId::half_of_nics, nics / 2}}) {
      if (used >= nics || (id == FaultId::half_of_nics && used < 2)) continue;
      models::Cluster& fewer =
          add(id, FaultKind::between_nodes,
              fmt::format("traffic leaves a node by {} of its {} NICs", used, nics),
              "NCCL_DEBUG=INFO lists the NICs that are used; NCCL_IB_HCA and NCCL_SOCKET_IFNAME "
              "name them");
      fewer.nics_per_node = used;
      if (used < 2 && fewer.fabric.kind == models::FabricKind::rail) fewer.fabric = {};
    }
    if (cluster_.nic.protocol == models::Protocol::rdma) {
      models::Cluster& tcp =
          add(FaultId::sockets, FaultKind::between_nodes, "NCCL uses TCP sockets, and no RDMA",
              "NCCL_DEBUG=INFO says NET/Socket in place of NET/IB, or of the plugin of the cloud");
      const models::Link sockets = models::catalog_link("ipoib-100g");
      tcp.nic.protocol = models::Protocol::tcp;
      tcp.nic.bandwidth =
          models::tcp_bandwidth(tcp.nic.line_rate, models::default_tcp_flows, tcp.ranks_per_node);
      tcp.nic.latency = sockets.latency;
      tcp.nic.told_latency = {};
      if (cluster_.gpudirect && cluster_.device.multiprocessors) {
        models::Cluster& staged = add(
            FaultId::no_gpudirect, FaultKind::between_nodes,
            "NICs do not reach the memory of GPUs (no GPUDirect RDMA)",
            "lsmod must have nvidia_peermem, or the kernel dma-buf; NCCL_DEBUG=INFO says GDRDMA");
        staged.gpudirect = false;
        staged.nic.bandwidth = models::bandwidth_without_gpudirect(staged.nic.line_rate);
      }
    }
    add(FaultId::slow_node, FaultKind::between_nodes,
        "the links of one node carry half of their bandwidth",
        "compare nodes by pairs: ibstat and ethtool show rates, cables and errors")
        .slow_nodes[0] = 1.0 / 2;
    if (cluster_.placement == models::Placement::node_major && cluster_.slots.empty() &&
        cluster_.ranks_per_node > 1)
      add(FaultId::dealt_in_turn, FaultKind::between_nodes,
          "ranks are dealt to nodes in turn, not node by node",
          "mpirun --map-by and srun --distribution place ranks")
          .placement = models::Placement::round_robin;
  }

  void in_nodes() {
    if (!cluster_.intra.is(models::LinkKind::nvlink) || cluster_.ranks_per_node < 2) return;
    const std::string_view pcie = pcie_of(cluster_.device.compute_capability);
    models::Cluster& over_pcie = add(FaultId::no_nvlink, FaultKind::in_nodes,
                                     "GPUs of a node reach each other over PCI Express, not NVLink",
                                     "nvidia-smi nvlink -s and nvidia-smi topo -m; the fabric "
                                     "manager must run; a container must "
                                     "see all GPUs");
    over_pcie.intra = models::catalog_link(pcie);
    over_pcie.intra_kind = models::IntraKind::switched;
  }

  void computation() {
    if (options_.precision != models::Precision::fp32) {
      add(FaultId::computes_in_fp32, FaultKind::computation, "it computes in FP32",
          "autocast or the configuration's precision; kernels of a trace say which type");
      faults_.back().options.precision = models::Precision::fp32;
    }
    if (options_.recompute == models::Recompute::none) {
      add(FaultId::computes_again, FaultKind::computation,
          "activations are computed again in the backward pass",
          "the configuration's activation checkpointing");
      faults_.back().options.recompute = models::Recompute::full;
    }
  }

  std::vector<Fault> faults_;

 private:
  models::Cluster& add(FaultId id, FaultKind kind, std::string what, std::string look) {
    faults_.push_back({id, kind, std::move(what), std::move(look), cluster_, options_});
    return faults_.back().cluster;
  }

  const models::Cluster& cluster_;
  const simulator::PredictionOptions& options_;
};

}  // namespace

std::vector<Fault> faults_of(const models::Cluster& cluster, int nodes,
                             const simulator::PredictionOptions& options) {
  Faults faults(cluster, options);
  if (nodes > 1 && cluster.platform == nullptr && cluster.has_nic()) faults.between_nodes();
  if (cluster.platform == nullptr) faults.in_nodes();
  faults.computation();
  return std::move(faults.faults_);
}

}  // namespace paceline::calibration
