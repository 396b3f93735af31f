// Mixtures of experts and latent attention: counts against loops, and how ranks share experts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "models/base/to_size.h"
#include "models/layout/rank_work.h"
#include "models/network/decoder.h"
#include "models/network/work.h"
#include "models/network/yaml.h"
#include "models/network/zoo.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

using ::testing::HasSubstr;

const LayerWork& layer_of(const NetworkWork& network, std::string_view name) {
  for (const LayerWork& layer : network.layers)
    if (layer.name == name) return layer;
  throw std::runtime_error("no layer " + std::string(name));
}

Decoder small_mixture() {
  return {.name = "small",
          .blocks = 2,
          .features = 64,
          .heads = 8,
          .key_value_heads = 8,
          .head_features = 8,
          .inner = 128,
          .vocabulary = 512,
          .sequence = 32,
          .has_gate = true,
          .experts = {.count = 8, .active = 2, .inner = 48}};
}

// Counts one multiply-add at a time.
RC_GTEST_PROP(Experts, CostWhatTheirLoopsDo, ()) {
  Decoder sizes = small_mixture();
  sizes.experts.count = *rc::gen::inRange(1, 12);
  sizes.experts.active = *rc::gen::inRange<std::int64_t>(1, sizes.experts.count + 1);
  sizes.experts.inner = *rc::gen::inRange(1, 20);
  sizes.sequence = *rc::gen::inRange(1, 9);
  const NetworkWork network = work(decoder(sizes));
  std::int64_t products = 0;
  std::int64_t copied = 0;
  for (std::int64_t token = 0; token < sizes.sequence; ++token)
    for (std::int64_t expert = 0; expert < sizes.experts.active; ++expert) {
      copied += sizes.features;
      products += 2 * sizes.features * sizes.experts.inner;
    }
  for (const char* name : {"h0.experts.gate", "h0.experts.up", "h0.experts.down"}) {
    const LayerWork& layer = layer_of(network, name);
    RC_ASSERT(layer.forward_flops == products);
    RC_ASSERT(layer.backward_flops() == 2 * products);
    RC_ASSERT(layer.parameter_elements() ==
              sizes.experts.count * sizes.features * sizes.experts.inner);
  }
  RC_ASSERT(layer_of(network, "h0.router").output.elements() == copied);
  RC_ASSERT(layer_of(network, "h0.combine").output.elements() == sizes.sequence * sizes.features);
}

// Active parameters of a token (shared/reference/sharded.md, 4.1): what its products cost, over two.
TEST(Experts, ATokenCostsItsActiveParameters) {
  const NetworkWork mixtral = work(zoo_network("mixtral-8x7b"));
  double in_products = 0;
  for (const LayerWork& layer : mixtral.layers)
    if (layer.heads == 0) in_products += static_cast<double>(layer.forward_flops) / (2.0 * 4096);
  // Without the table that is looked up, and the norms.
  EXPECT_DOUBLE_EQ(in_products, 12'879'925'248.0 - 32000.0 * 4096 - 65 * 4096.0);
}

// Bytes that a token keeps in a layer (shared/reference/sharded.md, 3.2), with 16 bits of statistics of a head.
TEST(Experts, KeepWhatTheFieldsFormulaSays) {
  const NetworkWork network = work(zoo_network("mixtral-8x7b"));
  double of_block = 0;
  for (const LayerWork& layer : network.layers)
    if (block_of(layer.name) == "h1") of_block += 2.0 * static_cast<double>(layer.stored) / 4096;
  const double h = 4096;
  const double kv = 1024;
  const double f = 14336;
  EXPECT_DOUBLE_EQ(of_block, 12 * h + 4 * kv + 2 * 32 + 2 * (4 * h + 6 * f) + 4 * 8);
}

TEST(LatentAttention, KeepsAndComputesWhatTheFieldsFormulaSays) {
  const NetworkWork network = work(zoo_network("deepseek-v3"));
  const double s = 4096;
  double attention = 0;
  for (const LayerWork& layer : network.layers) {
    const bool is_attention = layer.name.starts_with("h0.attn") || layer.name == "h0.norm1" ||
                              layer.name == "h0.norm2" || layer.name == "h0.add1" ||
                              layer.name == "h0.add2";
    if (is_attention) attention += 2.0 * static_cast<double>(layer.stored) / s;
  }
  const double heads = 128;
  const double query = 192;
  const double value = 128;
  const double formula = 8 * 7168 + 2 * (2 * 1536 + 2 * 512 + 64) +
                         2 * heads * (query + query + value) + 2 * heads * value + 4 * heads;
  EXPECT_NEAR(attention, formula, formula * 0.01);
  const LayerWork& core = layer_of(network, "h0.attn");
  EXPECT_DOUBLE_EQ(static_cast<double>(core.forward_flops),
                   s * (2 * 4096 - s) * heads * (query + value));
  // The scores again, and the gradients of weights, values, queries and keys.
  EXPECT_DOUBLE_EQ(static_cast<double>(core.data_gradient_flops),
                   s * (2 * 4096 - s) * heads * (3 * query + 2 * value));
}

TEST(Experts, AreSharedOutToNeighbours) {
  const NetworkWork whole = work(decoder(small_mixture()));
  for (const int tensor : {1, 2, 4})
    for (const int expert : {1, 4, 8}) {
      if (expert > 1 && expert < tensor) continue;
      const Layout layout{.tensor = tensor, .expert = expert};
      const RankWork rank = rank_work(whole, layout);
      const int parts = std::max(tensor, expert);
      const LayerWork& of_rank = layer_of(rank.network, "h1.experts.up");
      const LayerWork& of_all = layer_of(whole, "h1.experts.up");
      EXPECT_EQ(of_rank.parameter_elements() * parts, of_all.parameter_elements());
      // Each rank has the tokens of its part of the sequence, whichever experts they pass.
      EXPECT_EQ(of_rank.forward_flops * tensor, of_all.forward_flops);
      int all_to_alls = 0;
      std::int64_t sent = 0;
      for (std::size_t i = 0; i < rank.exchanges.size(); ++i)
        for (const Exchange& exchange : rank.exchanges[i])
          if (exchange.axis == Exchange::Axis::expert &&
              block_of(rank.network.layers[i].name) == "h1") {
            all_to_alls += (exchange.forward ? 1 : 0) + (exchange.backward ? 1 : 0);
            sent += exchange.elements;
            EXPECT_EQ(exchange.copies, 2);
          }
      EXPECT_EQ(all_to_alls, parts > 1 ? 4 : 0);
      EXPECT_EQ(sent * tensor, parts > 1 ? 2 * 2 * 32 * 64 : 0);
      for (const Gradient& gradient : rank.network.gradients)
        EXPECT_EQ(gradient.parts,
                  gradient.name.find(".experts.") != std::string::npos ? layout.expert_parts() : 1)
            << gradient.name;
    }
}

TEST(LatentAttention, TensorParallelismSplitsHeadsAndNotTheLatentVectors) {
  const NetworkWork whole = work(zoo_network("deepseek-v3"));
  const RankWork rank = rank_work(whole, {.tensor = 4});
  for (const char* name : {"h5.attn.q_down", "h5.attn.kv_down", "h5.attn.k_shared"})
    EXPECT_EQ(layer_of(rank.network, name).parameter_elements(),
              layer_of(whole, name).parameter_elements());
  for (const char* name : {"h5.attn.q", "h5.attn.kv", "h5.attn.out"})
    EXPECT_EQ(4 * layer_of(rank.network, name).parameter_elements(),
              layer_of(whole, name).parameter_elements());
  EXPECT_EQ(4 * layer_of(rank.network, "h5.attn").forward_flops,
            layer_of(whole, "h5.attn").forward_flops);
}

TEST(Experts, WhatDoesNotFitIsRefused) {
  const NetworkWork mixture = work(decoder(small_mixture()));
  const auto error = [](const NetworkWork& network, const Layout& layout) {
    return test::error_of([&] { (void)rank_work(network, layout); });
  };
  EXPECT_THAT(error(mixture, {.expert = 3}),
              HasSubstr("--expert: 3 ranks for the 8 experts of layer 'h0.router'"));
  EXPECT_THAT(error(mixture, {.tensor = 2, .sequence_parallel = false}),
              HasSubstr("--no-sequence-parallel: the tokens of experts"));
  EXPECT_THAT(error(work(zoo_network("llama-3-8b")), {.expert = 2}),
              HasSubstr("llama-3-8b has no experts"));
  EXPECT_THAT(test::error_of([] { check_layout({.expert = 3}, 8, 1); }),
              HasSubstr("--expert: 3 ranks with different experts"));
  EXPECT_THAT(test::error_of([] { check_layout({.tensor = 4, .expert = 6}, 24, 1); }),
              HasSubstr("--expert"));
}

TEST(Experts, NetworksOfThemAreWrittenAndRead) {
  for (const char* name : {"mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"}) {
    const Network network = zoo_network(name);
    EXPECT_EQ(to_yaml(parse_network_yaml(to_yaml(network), "net.yaml")), to_yaml(network)) << name;
  }
}

}  // namespace
}  // namespace paceline::models
