// The neighbours that share a network out, by a gradient exchange.
#pragma once

#include "models/base/units.h"
#include "runtime/exchange/gradient_exchange.h"
#include "runtime/exchange/recorder.h"
#include "runtime/network/tensor_group.h"

namespace paceline::runtime {

class TensorSums final : public TensorGroup {
 public:
  // The exchange outlives this.
  explicit TensorSums(GradientExchange& exchange) : exchange_(exchange) {}

  void sum(const ArrayView& values) override;
  // Is told of sums from here on, as part of the layer at hand; may be null.
  void tell(LayerRecorder* layers) { layers_ = layers; }
  // How long passes have waited for sums since it was asked last.
  [[nodiscard]] Seconds take_waited();

 private:
  GradientExchange& exchange_;
  LayerRecorder* layers_ = nullptr;
  Seconds waited_{0};
};

}  // namespace paceline::runtime
