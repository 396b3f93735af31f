// How long a rank computes: forward and backward of each layer, and the optimizer's update.
//
// Times come from the first of these that there is (docs/design.md, "The iteration DAG"):
// An update by the host's processors (OptimizerChoice::on_host) moves what one of the device does, in FP32, at
// Effects::host_update over the ranks of the node; then the 16-bit copy travels to the device. Gradients travel to the
// host beside the backward pass, which is not counted.
//
//  1. per-layer times of the profile, for this network, precision and batch, and its update, where the
//     profile has one;
//  2. a calibrated throughput of the whole network on one rank, spread over the layers by the
//     roofline; at
//     another batch b, the time is a + c b: a and c from calibrated throughputs at two batches, or
//     a from the effects (`layer_launch` for each layer with weights, 0.55 of it in mixed precision of
//     networks that read no sequences) and c from the one
//     throughput, or else a = 0; for samples of another length, times the ratio of rooflines;
//  3. the roofline of the device and the effects' fixed time of each layer with weights, times the
//     ratio of calibrated time to the same of the network that the profile does have a throughput
//     for, on the same device and precision;
//  4. that roofline and fixed time alone, over what training steps reach of them
//     (`roofline_efficiency`, `roofline_efficiency_mixed`), whose interval is the time's.
// Where activations are recomputed, the backward pass of a layer has its share of its forward pass, too (models::Recomputation).
// In a job of several ranks, times are multiplied by the profile's slowdown of the network, where it
// has one, which may also say how much slower layers are beside collectives.
//
// Roofline: a pass over a layer takes max(FLOPs / (peak * compute efficiency),
// bytes / (memory bandwidth * memory efficiency)) (Williams et al. 2009). Bytes are activations of
// the batch and weights, each moved once (models/network/work.h). The peak of mixed precision is the best of the
// device's FP16 matrix, FP16 vector and FP32 rates, for FP16 storage can be computed in FP32; that of
// FP32 is TF32's where the device has it, as frameworks compute convolutions there
// (torch.backends.cudnn.allow_tf32, tf.config.experimental.enable_tensor_float_32_execution).
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "models/base/precision.h"
#include "models/cluster/cluster.h"
#include "models/network/optimizer.h"
#include "models/network/recompute.h"
#include "models/network/work.h"
#include "models/profile/profile.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/cost/layout_times.h"

namespace paceline::simulator {

// How long a collective loads the device fully, as much as layers had beside them when their times
// beside traffic were measured, or as any collective loads it at most. What is on its way for a time and
// moves this many bytes (of a bucket, on the wire) loads it for
//   min(time, max(least time, a_byte bytes))
// of full load, spread evenly over its time. As it stands here, all the time.
struct TrafficLoad {
  double least = 1;          // share of full load of whatever is on its way
  SecondsPerByte a_byte{0};  // full load for each byte

  // In seconds, for inner loops.
  [[nodiscard]] double full_s(double bytes, double time_s) const {
    return std::min(time_s, std::max(least * time_s, a_byte.value() * bytes));
  }
  [[nodiscard]] Seconds full(Bytes bytes, Seconds time) const {
    return Seconds{full_s(bytes.value(), time.value())};
  }

  bool operator==(const TrafficLoad&) const = default;
};

// The batches of an iteration before its last one, where gradients of several are accumulated.
struct EarlierBatches {
  int count = 0;
  std::vector<LayerTime> layers = {};  // of one of them, as NetworkWork::layers
};

struct ComputeTimes {
  std::vector<LayerTime> layers;  // as NetworkWork::layers
  // The times of layers under the full load of messages, as calibrated or as losses.h makes them. Where
  // they are not known this is empty, and messages do not slow computation down.
  std::vector<LayerTime> beside_traffic = {};
  // How much of that load a collective is.
  TrafficLoad load = {};
  // Whether those hold only beside collectives that run as kernels of the device, and not beside
  // messages that hosts and copy engines move.
  bool beside_kernels_only = false;
  // How many times as long layers take beside a collective that moves all that the links of
  // `calibrated_ranks` carry, where it was calibrated for all of them together. losses.h makes
  // `beside_traffic` and `load` of it.
  std::optional<Figure<double>> beside_collectives = {};
  // Their passes are counted in the forward pass of the first layer, because they send nothing.
  EarlierBatches earlier = {};
  // Earlier batches whose passes do send something, as those of sharded plans do. They are not counted in
  // any layer, and take as long as the last batch.
  int repeated = 0;
  LayoutTimes layout =
      {};  // of a rank that is part of a mesh; empty: ranks are data-parallel alone
  Seconds update;
  Provenance provenance = Provenance::predicted;
  std::string source;        // for people: what the times rest on
  int calibrated_ranks = 1;  // whose computation, waiting for the slowest included, was calibrated

  [[nodiscard]] Seconds total() const;
  // The same with each pass of a layer at the shorter of its times alone and beside traffic, and
  // slowed by nothing: no iteration computes in less.
  [[nodiscard]] ComputeTimes shortest() const;
};

struct ComputeRequest {
  const models::NetworkWork& network;
  const models::Device& device;
  const models::Profile* profile = nullptr;  // may be null
  models::Precision precision = models::Precision::fp32;
  int batch_per_rank = 1;
  int ranks = 1;                             // of the job
  const models::Effects* effects = nullptr;  // null: no time of a layer is fixed
  models::OptimizerChoice optimizer = {};    // as in MemoryRequest
  // Where the host updates the weights: the ranks of a node, which share its processors, and the link of a rank to it.
  int ranks_of_node = 1;
  const models::Link* host_link = nullptr;
  models::Recompute recompute = models::Recompute::none;
  // The whole network, where `network` is a rank's share of it (models/layout/rank_work.h); else null. What is
  // calibrated belongs to the whole: it takes some factor of its roofline's time, and a rank takes the same factor
  // of its own roofline's time.
  const models::NetworkWork* whole = nullptr;
};

// The dense peak of the device at a precision: the best of what can compute it.
[[nodiscard]] FlopsPerSecond peak_rate(const models::Device& device, models::Precision precision,
                                       Bound bound);

[[nodiscard]] ComputeTimes compute_times(const ComputeRequest& request, Bound bound);

// The roofline alone, whatever the profile says, without fixed times.
[[nodiscard]] ComputeTimes roofline_times(const ComputeRequest& request, Bound bound);

}  // namespace paceline::simulator
