// How each kind of layer is compiled. Private to runtime/network/onednn.
#pragma once

#include <memory>

#include "models/network/layer.h"

namespace paceline::runtime::onednn {

class Compiler;

class LayerPlanner {
 public:
  virtual ~LayerPlanner() = default;
  virtual void plan_forward(Compiler& compiler) = 0;
  // The output's gradient is there, and needed by somebody.
  virtual void plan_backward(Compiler& compiler) = 0;
};

using Planner = std::unique_ptr<LayerPlanner>;
[[nodiscard]] Planner make_planner(const models::Convolution& layer);
[[nodiscard]] Planner make_planner(const models::FullyConnected& layer);
[[nodiscard]] Planner make_planner(const models::BatchNorm& layer);
[[nodiscard]] Planner make_planner(const models::Relu& layer);
[[nodiscard]] Planner make_planner(const models::MaxPool& layer);
[[nodiscard]] Planner make_planner(const models::AveragePool& layer);
[[nodiscard]] Planner make_planner(const models::AdaptiveAveragePool& layer);
[[nodiscard]] Planner make_planner(const models::Lrn& layer);
[[nodiscard]] Planner make_planner(const models::Dropout& layer);
[[nodiscard]] Planner make_planner(const models::Add& layer);
[[nodiscard]] Planner make_planner(const models::Concat& layer);
[[nodiscard]] Planner make_planner(const models::Flatten& layer);
[[nodiscard]] Planner make_planner(const models::Embedding& layer);
[[nodiscard]] Planner make_planner(const models::Linear& layer);
[[nodiscard]] Planner make_planner(const models::TiedLinear& layer);
[[nodiscard]] Planner make_planner(const models::LayerNorm& layer);
[[nodiscard]] Planner make_planner(const models::Gelu& layer);
[[nodiscard]] Planner make_planner(const models::Silu& layer);
[[nodiscard]] Planner make_planner(const models::Multiply& layer);
[[nodiscard]] Planner make_planner(const models::Attention& layer);
// Plans a layer norm with rms.
[[nodiscard]] Planner make_rms_norm_planner();
[[nodiscard]] Planner make_planner(const models::SoftmaxCrossEntropy& layer);

}  // namespace paceline::runtime::onednn
