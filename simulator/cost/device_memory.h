// The memory that a rank needs of its device, in bytes, and the largest batch that fits.
//
// A network of N parameters takes these for the whole iteration:
//  - parameters: N working weights, in the type of the forward pass;
//  - masters: N FP32 weights that the update changes; in mixed precision only;
//  - gradients: N gradients as the backward pass leaves them; twice with double buffering, because the
//    gradients of the iteration before wait for the update;
//  - optimizer: N FP32 values for each state of the optimizer;
//  - input: a batch in FP32, as it is copied to the device;
//  - buffers: a bucket on its way, to send from and to receive into, for the largest buckets that
//    may travel at the same time; for K-FAC, all that its reduce-scatter after the backward pass, or
//    beside it, moves;
//  - factors: of K-FAC, those of all layers in FP32, and their inverses on the owner that has most.
//
// Where the plan is sharded (models/layout/sharding.h), what is split over s shards is divided by s. Parameters
// that are split are the masters themselves, and their gradients are FP32, too. Buffers are then, for the
// largest bucket that is in a block, of U parameters of w bytes and gradients of g bytes on the wire:
//   zero1  (1 + 1/s) g U, of a reduction, where gradients are not kept in the type of the wire
//   zero2  the same, and w U, of gradients that are whole until then
//   zero3  (3 w + g) U: the unit in use, the buffer of the next one, the unit's gradients, and the buffer in
//          which those of the unit before are reduced; and w for each parameter in no block, or for
//          each of the N where they are not dropped after the forward pass
//
// Where the host updates the weights (OptimizerChoice::on_host), it keeps masters, states, and FP32 gradients that are
// split; parameters that are split are on the device in the type of the forward pass (ZeRO-Offload, Ren 2021, 4.1).
//
// Two parts come and go: activations, which the forward pass stores (LayerWork::stored) and the backward pass
// drops, last layer first; and a workspace, the gradients of activations that one layer's backward pass reads
// and writes (for K-FAC, also the FP32 matrix that A is computed from, of the layer where it is largest). Where gradients
// are kept in a larger type than layers compute them in, those of one block's weights are there in both
// (Transformer Engine keeps one of each shape). The
// loss keeps probabilities in FP32, and the gradient of the logits takes their place. Where blocks are
// recomputed, a block stores its input, and all that it computes while its backward pass is under way. The
// figures are those of the moment when their sum is largest.
//
// Where the plan has a layout (models/layout), all that is of a rank's share of the network (rank_work.h), and of
// the stage that needs most. A stage keeps the activations of as many batches as are on their way through it
// (pipeline_order.h), and its gradients in the type of the wire, in which batches are added up; sharded plans keep
// theirs so, too. Stages with sharded parameters or gradients have these whole during an iteration
// (simulator/iteration/pipeline_tasks.h).
//
// Not counted: the workspace that a library's convolution algorithms ask for, a CUDA context, buffers of a
// library's communicators, and what an allocator loses to fragments. So a job that is said to fit may
// still not, by that much.
#pragma once

#include <optional>

#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/network/optimizer.h"
#include "models/network/recompute.h"
#include "models/network/work.h"
#include "models/plan/plan.h"

namespace paceline::simulator {

struct MemoryRequest {
  const models::NetworkWork& network;  // the whole of it, whatever the plan's layout
  const models::Plan& plan;            // for the network
  models::Precision precision = models::Precision::fp32;
  int batch_per_rank = 1;
  // Without a choice, a network with attention is trained by Adam, and others by momentum.
  models::OptimizerChoice optimizer = {};
  models::Recompute recompute = models::Recompute::none;
  int accumulate = 1;  // batches of an iteration
};

// Bytes on one device.
struct DeviceMemory {
  Bytes parameters;
  Bytes masters;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;
  Bytes input;
  Bytes workspace;
  Bytes buffers;
  Bytes factors = {};  // of K-FAC
  Bytes on_host = {};  // of the host's memory, in place of the device's
  int peak_layer = 0;  // in whose backward pass activations and workspace are largest together
  int stage = 0;       // of a pipeline, whose ranks need so much; the others need no more

  [[nodiscard]] Bytes total() const {
    return parameters + masters + gradients + optimizer + activations + input + workspace +
           buffers + factors;
  }
};

// O(layers + buckets); for K-FAC O(layers log layers).
[[nodiscard]] DeviceMemory device_memory(const MemoryRequest& request);

// The largest batch per rank for which the total is at most `capacity`; 0 where not even one sample
// fits. The request's own batch has no effect. At most 2^30, where a network keeps next to nothing.
[[nodiscard]] int largest_batch(const MemoryRequest& request, Bytes capacity);

}  // namespace paceline::simulator
