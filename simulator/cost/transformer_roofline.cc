// Tests: tests/simulator/compute_time_test.cc.
#include "simulator/cost/transformer_roofline.h"

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "simulator/cost/expert_load.h"

namespace paceline::simulator {
namespace {

constexpr double attention_backward = 0.82;
constexpr double norm_forward = 0.60;
constexpr double norm_backward = 0.33;
constexpr double loss_memory = 0.30;
constexpr double routing_memory = 0.50;
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
  // The first number of the shape of experts' weights counts experts.
  std::span<const std::int64_t> sides = layer.parameters.front().shape;
  if (layer.kind == "expert_linear") sides = sides.subspan(1);
  return static_cast<double>(*std::ranges::min_element(sides));
}

// A line over the logarithm of the side, from one at `small` to one at `large`.
double on_line(double side, double small, double large, double from, double to) {
  const double part = std::log(side / small) / std::log(large / small);
  return from + std::clamp(part, 0.0, 1.0) * (to - from);
}

// The rate of a product in FP8 over that in 16 bits.
double fp8_share(const models::TransformerKernels& kernels, double side, Bound bound) {
  constexpr double small_gain = 0.15;
  constexpr double small_side = 1024;
  const double gain = rate_at(*kernels.fp8, bound) - 1;
  return 1 + gain * on_line(side, small_side, models::TransformerKernels::full_side, small_gain, 1);
}

double side_share(const models::TransformerKernels& kernels, double side) {
  using K = models::TransformerKernels;
  if (side == 0) return 1;
  const auto between = [&](double small, double large, double from, double to) {
    return on_line(side, small, large, from, to);
  };
  return side < K::middle_side
             ? between(K::small_side, K::middle_side, kernels.small_share, kernels.middle_share)
             : between(K::middle_side, K::full_side, kernels.middle_share, 1);
}

// Tiles that libraries cut a product into, and the rate of each over that of the largest.
struct Tile {
  double rows;
  double columns;
  double rate;
};
constexpr std::array tiles = {Tile{256, 128, 1}, Tile{128, 256, 1}, Tile{128, 128, 0.9},
                              Tile{128, 64, 0.72}, Tile{64, 64, 0.5}};

// The time of all waves over that of the outputs at the full rate.
double waves_over_outputs(double tokens, double features, int multiprocessors) {
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles) {
    const double count = std::ceil(tokens / tile.rows) * std::ceil(features / tile.columns);
    const double waves = std::ceil(count / multiprocessors);
    least = std::min(least, waves * multiprocessors * tile.rows * tile.columns / tile.rate);
  }
  return least / (tokens * features);
}

// A product of weights has outputs of its tokens by its features, and on the way back by those of its input.
void take_waves(const models::LayerWork& layer, double batch, int multiprocessors,
                LayerRooflines& of) {
  const auto features = static_cast<double>(layer.output.channels);
  const double tokens = batch * static_cast<double>(layer.output.elements()) / features;
  const std::int64_t weights =
      layer.tied_elements > 0 ? layer.tied_elements : layer.parameters.front().elements;
  const double inputs = static_cast<double>(weights) / features;
  of.forward.flops = of.forward.flops / wave_share(tokens, features, multiprocessors);
  const auto data = static_cast<double>(layer.data_gradient_flops);
  const auto all = static_cast<double>(layer.backward_flops());
  if (all > 0)
    of.backward.flops =
        of.backward.flops / (1 + data / all * (wave_share(tokens, inputs, multiprocessors) - 1));
}

std::int64_t also_moved(const models::LayerWork& layer) {
  if (layer.kind == "add") return 3 * layer.output.elements();
  const bool has_bias = layer.forward_flops > 0 && layer.parameters.size() > 1;
  return has_bias ? layer.output.elements() : 0;
}

}  // namespace

bool is_by_kernels(const models::NetworkWork& network, const models::Device& device,
                   models::Precision precision) {
  return models::has_masters(precision) && device.transformer && network.fuses_attention();
}

double wave_share(double tokens, double features, int multiprocessors) {
  constexpr double many_tokens = 8192;
  return waves_over_outputs(tokens, features, multiprocessors) /
         waves_over_outputs(many_tokens, features, multiprocessors);
}

LayerRooflines transformer_rooflines(const models::NetworkWork& network,
                                     const models::LayerWork& layer, int batch,
                                     const models::Device& device, models::Precision precision,
                                     FlopsPerSecond peak, Bound bound) {
  const models::TransformerKernels& kernels = *device.transformer;
  const BytesPerSecond memory = device.memory_bandwidth.value;
  const double side = smaller_side(layer);
  Roofline products{side_share(kernels, side) * kernels.product.value * peak,
                    effective_memory_bandwidth(device, Bound::stated)};
  // Logits and the choice of experts stay in 16 bits.
  const bool is_fp8 = precision == models::Precision::fp8 && side > 0 &&
                      layer.kind != "route_tokens" && !models::block_of(layer.name).empty();
  if (is_fp8) products.flops *= fp8_share(kernels, side, bound);
  if (layer.kind == "expert_linear") {
    products.adds = true;
    if (layer.expert_ranks > 1) products.times = expert_load(bound);
  }
  LayerRooflines of{products, products, also_moved(layer)};
  if (side > 0 && layer.kind != "expert_linear" && device.multiprocessors)
    take_waves(layer, batch, *device.multiprocessors, of);
  if (is_fp8) {
    // Two bytes are read, and one is written twice: two elements of 16 bits.
    of.forward_cast = 2 * layer.forward_read;
    of.backward_cast = 2 * layer.output.elements();
  }
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
  } else if (layer.kind == "route_tokens" || layer.kind == "combine_tokens") {
    of.forward.memory = of.backward.memory = routing_memory * memory;
  }
  return of;
}

}  // namespace paceline::simulator
