// The compiler turns the steps of a network (runtime/network/steps/layer_steps.h) into operations on
// memory of a device. A step becomes kernels of our own, or one operation of a library where there is
// one and it computes such steps; both read and write the same tensors, so that either may stand
// beside the other.
//
// Values are NHWC in the storage type. The time of the memory plan is the number of the step: two
// tensors share memory if none is needed in a step in which the other is. No operation overwrites what
// it reads except for the running statistics.
//
// Private to runtime/network/cuda.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "models/network/network.h"
#include "runtime/network/cuda/memories.h"
#include "runtime/network/cuda/operations.h"
#include "runtime/network/cuda/step_library.h"
#include "runtime/network/steps/layer_steps.h"
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

// A tensor of the steps, and where it stands.
struct PlacedTensor {
  std::byte* first = nullptr;
  std::size_t bytes = 0;
};

struct Program {
  Operation load_images;
  std::vector<LayerProgram> layers;
  // By parameter: how its working copy is filled, with a source that is null.
  Operations working_copies;
  std::vector<InitialBytes> initial;
  // Tensors in the arena, which share memory; those with memory of their own are not named.
  std::map<steps::Tensor, PlacedTensor> tensors;

  // Memory of the device that the host writes before a pass, or reads behind it.
  float* images = nullptr;  // FP32 NCHW
  std::int32_t* labels = nullptr;
  PassParameters* pass = nullptr;
  SampleOutcome* outcomes = nullptr;
  float* logits = nullptr;
  float* statistics = nullptr;  // running means of all batch norms, then their variances
  std::size_t statistics_elements = 0;
};

// `library` may be null; it plans when memory is measured, and gets its memory when that is bound.
// Throws InputError that names the layer if an LRN is of an even size, and what the library throws.
// The network is one that computes (check_trainable), and the places are its own.
[[nodiscard]] Program compile(const models::Network& network,
                              const TrainableNetworkOptions& options,
                              const std::vector<ParameterPlace>& places, StepLibrary* library,
                              Memories& memories);

}  // namespace paceline::runtime::cuda
