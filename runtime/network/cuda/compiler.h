// The compiler turns a models::Network into operations on tensors of a device.
//
// It goes forward once, in which each layer gives its output a block and says what its backward pass
// will read, and backward once. Values are NHWC in the storage type. No two values share a block at
// one time, and no operation overwrites what it reads, so that every operation may be repeated.
//
// Private to runtime/network/cuda.
#pragma once

#include <cstddef>
#include <vector>

#include "models/network/network.h"
#include "runtime/network/cuda/memories.h"
#include "runtime/network/cuda/operations.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime::cuda {

// The operations of one layer.
struct LayerProgram {
  Operations training;
  Operations evaluation;
  // The backward pass: first the gradients of the parameters, which are then announced, then those
  // of the inputs.
  Operations parameter_gradients;
  Operations data_gradients;
  std::vector<int> parameters;  // in backward order
};

// Numbers that a table of the device begins with.
struct InitialBytes {
  std::byte* target = nullptr;
  std::vector<std::byte> bytes;
};

struct Program {
  Operation load_images;
  std::vector<LayerProgram> layers;
  // By parameter: how its working copy is filled, with a source that is null.
  Operations working_copies;
  std::vector<InitialBytes> initial;

  // Memory of the device that the host writes before a pass, or reads behind it.
  float* images = nullptr;  // FP32 NCHW
  std::int32_t* labels = nullptr;
  PassParameters* pass = nullptr;
  SampleOutcome* outcomes = nullptr;
  float* logits = nullptr;
  float* statistics = nullptr;  // running means of all batch norms, then their variances
  std::size_t statistics_elements = 0;
};

// Throws InputError that names the layer if an LRN is of an even size. The network is one that
// computes (check_trainable), and the places are its own.
[[nodiscard]] Program compile(const models::Network& network,
                              const TrainableNetworkOptions& options,
                              const std::vector<ParameterPlace>& places, Memories& memories);

}  // namespace paceline::runtime::cuda
