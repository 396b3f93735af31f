// Frequent faults of a cluster, and of how a job is started on it, each as a change of the expectation. A
// prediction with the change says what it costs, so that a measurement tells which of them it looks like.
//
// The list follows what people found in the end when they asked why a cluster was slow: one NIC of several in use,
// sockets in place of RDMA, no GPUDirect, GPUs that reach each other over PCI Express (nccl-tests#290, #309,
// #389; fms-fsdp#78), FP32, activations that are recomputed, kernels that wait for the host (torchtitan#676,
// llm-foundry#1706, Megatron-LM#48).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/cluster/cluster.h"
#include "simulator/prediction/prediction_options.h"

namespace paceline::calibration {

enum class FaultId {
  one_nic,
  half_of_nics,
  sockets,
  no_gpudirect,
  slow_node,
  dealt_in_turn,
  no_nvlink,
  computes_in_fp32,
  computes_again,
};
// The part of a job that a change is made to.
enum class FaultKind { between_nodes, in_nodes, computation };

// The cluster and the options are as they would be. What is not changed is what it was.
struct Fault {
  FaultId id = FaultId::one_nic;
  FaultKind kind = FaultKind::between_nodes;
  std::string what;  // "traffic leaves a node by 1 of its 8 NICs"
  std::string look;  // where to look: "NCCL_DEBUG=INFO lists the NICs that are used"
  models::Cluster cluster;
  simulator::PredictionOptions options;
};

// Returns the faults that the cluster and the job can have. `nodes` is the number of nodes that ranks are on.
[[nodiscard]] std::vector<Fault> faults_of(const models::Cluster& cluster, int nodes,
                                           const simulator::PredictionOptions& options);

}  // namespace paceline::calibration
