// A compiled network is lists of steps, each a primitive of oneDNN or a function of ours.
// Private to runtime/network/onednn.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>
#include "runtime/network/trainable_network.h"

namespace paceline::runtime::onednn {

// What the steps of one pass read, and what they write beside tensors.
struct Call {
  dnnl::stream& stream;
  std::uint64_t seed = 0;                     // of dropout
  std::span<const std::int32_t> labels = {};  // of the samples that count: batch, or fewer
  float loss_scale = 1;
  std::span<float* const> gradients = {};  // the caller's arrays, by parameter
  PassOutcome outcome = {};
};

class Step {
 public:
  using Arguments = std::unordered_map<int, dnnl::memory>;
  Step(const dnnl::primitive& primitive, const Arguments& arguments);
  explicit Step(std::function<void(Call&)> function) : function_(std::move(function)) {}

  void run(Call& call) const;

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;  // which arguments_ refer to
  std::vector<dnnl_exec_arg_t> arguments_;
  std::function<void(Call&)> function_;  // instead of a primitive, if there is one
};

using Steps = std::vector<Step>;

// The steps of one layer.
struct LayerProgram {
  Steps training;
  Steps evaluation;
  // The backward pass: first the gradients of the parameters, which are then announced, then those
  // of the inputs.
  Steps parameter_gradients;
  Steps data_gradients;
  std::vector<int> parameters;  // in backward order
};

}  // namespace paceline::runtime::onednn
