// Tests: tests/simulator/compute_time_test.cc.
#include "simulator/cost/transformer_roofline.h"

#include <cmath>
#include <vector>

namespace paceline::simulator {
namespace {

constexpr double attention_backward = 0.82;
constexpr double norm_forward = 0.60;
constexpr double norm_backward = 0.33;
constexpr double loss_memory = 0.30;
constexpr double full_head = 128;
constexpr double head_offset = 32;

// The rate of a head of this width over that of one of 128.
double head_share(std::int64_t features) {
  const auto width = static_cast<double>(features);
  return width / (width + head_offset) * (full_head + head_offset) / full_head;
}

// The smaller side of a layer's weights; 0 where it has no matrix product.
double smaller_side(const models::LayerWork& layer) {
  if (layer.tied_elements > 0) {
    const auto vocabulary = static_cast<double>(layer.output.channels);
    return std::min(vocabulary, static_cast<double>(layer.tied_elements) / vocabulary);
  }
  if (layer.parameters.empty() || layer.forward_flops == 0) return 0;
  return static_cast<double>(*std::ranges::min_element(layer.parameters.front().shape));
}

double side_share(const models::TransformerKernels& kernels, double side) {
  using K = models::TransformerKernels;
  if (side == 0) return 1;
  const auto between = [&](double small, double large, double from, double to) {
    const double part = std::log(side / small) / std::log(large / small);
    return from + std::clamp(part, 0.0, 1.0) * (to - from);
  };
  return side < K::middle_side
             ? between(K::small_side, K::middle_side, kernels.small_share, kernels.middle_share)
             : between(K::middle_side, K::full_side, kernels.middle_share, 1);
}

std::int64_t also_moved(const models::LayerWork& layer) {
  if (layer.kind == "add") return 3 * layer.output.elements();
  const bool has_bias = layer.forward_flops > 0 && layer.parameters.size() > 1;
  return has_bias ? layer.output.elements() : 0;
}

}  // namespace

bool is_by_kernels(const models::NetworkWork& network, const models::Device& device,
                   models::Precision precision) {
  return precision == models::Precision::mixed && device.transformer && network.fuses_attention();
}

LayerRooflines transformer_rooflines(const models::NetworkWork& network,
                                     const models::LayerWork& layer, const models::Device& device,
                                     FlopsPerSecond peak, Bound bound) {
  const models::TransformerKernels& kernels = *device.transformer;
  const BytesPerSecond memory = device.memory_bandwidth.value;
  const Roofline products{side_share(kernels, smaller_side(layer)) * kernels.product.value * peak,
                          effective_memory_bandwidth(device, Bound::stated)};
  LayerRooflines of{products, products, also_moved(layer)};
  if (layer.head_features > 0) {
    const auto sequence = static_cast<double>(network.sequence);
    of.forward.flops = sequence / (sequence + kernels.half_rate_sequence) *
                       head_share(layer.head_features) * rate_at(kernels.attention, bound);
    of.backward.flops = attention_backward * of.forward.flops;
  } else if (layer.kind == "layer_norm") {
    of.forward.memory = norm_forward * memory;
    of.backward.memory = norm_backward * memory;
  } else if (layer.kind == "softmax_cross_entropy") {
    of.forward.memory = of.backward.memory = loss_memory * memory;
  }
  return of;
}

}  // namespace paceline::simulator
