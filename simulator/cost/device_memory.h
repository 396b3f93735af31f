// The memory that a rank needs of its device, in bytes, and the largest batch that fits.
//
// Counted, for N parameters and a batch of b samples per rank (formulas: docs/models.md):
//  - parameters: N working weights, in the type of the forward pass;
//  - masters: N FP32 weights that the update changes; in mixed precision only;
//  - gradients: N gradients as the backward pass leaves them; twice with double buffering, for the
//    gradients of the iteration before wait for the update;
//  - optimizer: N FP32 values for each state of the optimizer;
//  - activations: b times what the forward pass writes, all of which is kept for the backward pass:
//    the output of every layer but ReLU (in place) and flatten (a view), and beside them the index
//    of a max pooling, the mask of a dropout and the scale of an LRN, as large as their output, and
//    of attention the softmax of its scores, with its dropout's output and mask;
//  - input: b samples in FP32, as they are copied to the device;
//  - workspace: the gradients of activations that one layer's backward pass reads and writes, of
//    the layer where they are largest. They live only from layer to layer. For K-FAC, also the FP32
//    matrix that A is computed from, of the layer where it is largest;
//  - buffers: a bucket on its way, to send from and to receive into, for the largest buckets that
//    may travel at the same time; for K-FAC, all that its reduce-scatter after the backward pass, or
//    beside it, moves;
//  - factors: of K-FAC, those of all layers in FP32, and their inverses on the owner that has most.
//
// Not counted: the workspace that a library's convolution algorithms ask for, a CUDA context, and
// what an allocator loses to fragments. So a job that is said to fit may still not, by that much; a
// job that is said not to fit needs less memory than it takes today (recomputation, for instance).
#pragma once

#include <optional>

#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/network/work.h"
#include "models/plan/plan.h"

namespace paceline::simulator {

inline constexpr int most_optimizer_states = 16;

struct MemoryRequest {
  const models::NetworkWork& network;
  const models::Plan& plan;  // for the network
  models::Precision precision = models::Precision::fp32;
  int batch_per_rank = 1;
  // FP32 values that the optimizer keeps for each parameter: 0 for plain SGD, 1 for momentum and
  // LARS, 2 for an optimizer of two moments; by default those that are usual for the network.
  std::optional<int> optimizer_states = {};
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
