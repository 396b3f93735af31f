// Networks that mix images, sequences and windows: squeeze-and-excitation, layer scale, attention
// over windows with a bias of positions, class tokens, and what only moves elements.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/network/shape_inference.h"
#include "models/network/work.h"
#include "models/network/yaml.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

using test::error_of;

struct Moved {
  std::int64_t forward_read, forward_written, backward_read, backward_written, kept;
  bool operator==(const Moved&) const = default;
};

void PrintTo(const Moved& m, std::ostream* out) {
  *out << m.forward_read << ' ' << m.forward_written << ' ' << m.backward_read << ' '
       << m.backward_written << ' ' << m.kept;
}

Moved moved(const LayerWork& l) {
  return {l.forward_read, l.forward_written, l.backward_read, l.backward_written, l.kept};
}

// A layer that reads this shape from a layer that keeps it.
LayerWork work_of(const Shape& input, LayerKind kind) {
  NetworkBuilder net("net", input);
  net.add("before", Relu{});
  net.add("layer", std::move(kind));
  return work(net.build()).layers[1];
}

const Shape image = Shape::image(4, 8, 6);  // 192 elements

TEST(AttentionOverImages, TrafficOfWhatMovesByHand) {
  const auto of = [](LayerKind kind) { return moved(work_of(image, std::move(kind))); };
  EXPECT_EQ(of(StochasticDepth{0.1}), (Moved{192, 192, 192, 192, 0}));
  EXPECT_EQ(of(Scale{}), (Moved{192, 192, 384, 192, 192}));
  EXPECT_EQ(of(Scale{false}), (Moved{192, 192, 192, 192, 0}));
  EXPECT_EQ(of(Rearrange{Shape::sequence(48, 4)}), (Moved{192, 192, 192, 192, 0}));
  EXPECT_EQ(of(Rearrange{Shape::sequence(48, 4), true}), (Moved{0, 0, 0, 0, 0}));
  EXPECT_EQ(of(Slice{Shape::image(2, 8, 6)}), (Moved{0, 0, 96, 96, 0}));
  EXPECT_EQ(of(Pad{Shape::image(4, 10, 7)}), (Moved{192, 280, 192, 192, 0}));
  EXPECT_EQ(of(LayerNorm{}), (Moved{192, 192, 384, 192, 192}));
  const auto of_sequence = [](LayerKind kind) {
    return moved(work_of(Shape::sequence(10, 4), std::move(kind)));
  };
  EXPECT_EQ(of_sequence(ClassToken{}), (Moved{40, 44, 44, 40, 0}));
  EXPECT_EQ(of_sequence(MeanToken{}), (Moved{40, 4, 4, 40, 0}));
}

TEST(AttentionOverImages, AProductKeepsBothInputsAndReadsThemAgain) {
  NetworkBuilder net("net", image);
  net.add("a", Relu{});
  net.add("pool", AdaptiveAveragePool{square(1)});
  net.add("excitation", Tanh{});
  net.add("product", Multiply{}, {"a", "excitation"});
  net.add("square", Multiply{}, {"product", "product"});
  const std::vector<LayerWork> l = work(net.build()).layers;
  EXPECT_EQ(moved(l[3]), (Moved{196, 192, 192 + 196, 196, 196}));
  EXPECT_EQ(moved(l[4]), (Moved{384, 192, 192 + 384, 384, 384}));
  EXPECT_EQ(l[3].output, image);
  EXPECT_EQ(l[3].forward_flops, 0);
}

TEST(AttentionOverImages, LinearAndLayerNormGoOverEachPlaceOfAnImage) {
  const LayerWork linear = work_of(image, Linear{10});
  EXPECT_EQ(linear.output, Shape::image(10, 8, 6));
  EXPECT_EQ(linear.forward_flops, 2 * 48 * 4 * 10);
  EXPECT_EQ(linear.parameter_elements(), 4 * 10 + 10);
  EXPECT_EQ(work_of(image, LayerNorm{}).parameter_elements(), 8);
  EXPECT_EQ(work_of(image, LayerNorm{false}).parameter_elements(), 4);
  EXPECT_EQ(work_of(image, Convolution{.channels = 10, .kernel = square(1)}).forward_flops,
            linear.forward_flops);
}

TEST(AttentionOverImages, LearnedTensorsHaveTheLayersName) {
  NetworkBuilder net("net", Shape::sequence(49, 6));
  net.add("token", ClassToken{});
  net.add("positions", Embedding{.of = Embedding::Of::positions, .entries = 50, .features = 6});
  net.add("sum", Add{}, {"token", "positions"});
  net.add("gamma", Scale{});
  const NetworkWork result = work(net.build());
  std::vector<std::pair<std::string, std::int64_t>> gradients;
  for (const Gradient& g : result.gradients) gradients.emplace_back(g.name, g.elements);
  const std::vector<std::pair<std::string, std::int64_t>> expected = {
      {"gamma", 6}, {"positions", 300}, {"token", 6}};
  EXPECT_EQ(gradients, expected);
}

NetworkBuilder windows(std::int64_t elements, std::int64_t features, Attention attention,
                       std::int64_t hidden) {
  NetworkBuilder net("net", Shape::sequence(elements, features));
  net.add("table",
          RelativePositionBias{.entries = 9,
                               .heads = attention.heads,
                               .window = attention.window == 0 ? elements : attention.window,
                               .hidden = hidden});
  net.add("qkv", Linear{3 * features}, {"input"});
  net.add("attention", attention, {"qkv", "table"});
  return net;
}

// Multiply-adds counted one by one: each element attends to those of its own window.
RC_GTEST_PROP(AttentionOverImages, WindowsCostWhatTheirLoopsDo, ()) {
  const std::int64_t heads = *rc::gen::inRange(1, 4);
  const std::int64_t each = *rc::gen::inRange(1, 4);
  const std::int64_t window = *rc::gen::inRange(1, 6);
  const std::int64_t count = *rc::gen::inRange(1, 5);
  const double dropout = *rc::gen::element(0.0, 0.1);
  const std::int64_t s = count * window;
  std::int64_t products = 0;
  for (std::int64_t query = 0; query < s; ++query)
    for (std::int64_t key = 0; key < s; ++key)
      if (query / window == key / window) products += 2 * heads * each;
  const std::int64_t h = heads * each;
  const NetworkWork net =
      work(windows(s, h, {.heads = heads, .dropout = dropout, .window = window}, 0).build());
  const LayerWork& layer = net.layers.back();
  RC_ASSERT(layer.output == Shape::sequence(s, h));
  RC_ASSERT(layer.forward_flops == 2 * products);
  RC_ASSERT(layer.data_gradient_flops == 4 * products);
  const std::int64_t square = heads * s * window;
  const std::int64_t drop = dropout > 0 ? square : 0;
  // The bias is one for all samples, and no traffic of any.
  RC_ASSERT(layer.forward_read == 3 * s * h + 2 * square + drop);
  RC_ASSERT(layer.kept == 3 * s * h + square + 2 * drop);
  RC_ASSERT(moved(net.layers[0]) == (Moved{0, 0, 0, 0, 0}));
  RC_ASSERT(net.layers[0].forward_weights() == 9 * heads);
  // One window as long as the sequence is the attention without windows.
  const Attention whole{.heads = heads, .dropout = dropout, .window = s};
  RC_ASSERT(work(windows(s, h, whole, 0).build()).forward_flops() ==
            work(windows(s, h, {.heads = heads, .dropout = dropout}, 0).build()).forward_flops());
}

TEST(AttentionOverImages, ANetworkOfDistancesHasItsTensors) {
  const NetworkWork net =
      work(windows(8, 6, {.heads = 2, .window = 4, .learned_scale = true}, 512).build());
  std::vector<std::string> names;
  for (const Gradient& g : net.gradients) names.push_back(g.name);
  EXPECT_EQ(names, (std::vector<std::string>{"attention.logit_scale", "qkv.bias", "qkv.weight",
                                             "table.2.weight", "table.0.bias", "table.0.weight"}));
  EXPECT_EQ(net.layers[0].parameter_elements(), 2 * 512 + 512 + 2 * 512);
  EXPECT_EQ(net.layers[2].parameter_elements(), 2);
}

const char* const document =
    "network: toy\n"
    "input: [3, 8, 8]\n"
    "layers:\n"
    "  - {name: stem, kind: convolution, channels: 8, kernel: 2, stride: 2}\n"
    "  - {name: excitation, kind: adaptive_average_pool, output: 1}\n"
    "  - {name: product, kind: multiply, inputs: [stem, excitation]}\n"
    "  - {name: norm, kind: layer_norm, bias: false}\n"
    "  - {name: gamma, kind: scale}\n"
    "  - {name: half, kind: scale, learned: false}\n"
    "  - {name: depth, kind: stochastic_depth, probability: 0.1}\n"
    "  - {name: part, kind: slice, output: [6, 4, 4]}\n"
    "  - {name: padded, kind: pad, output: [6, 6, 4]}\n"
    "  - {name: windows, kind: rearrange, output: {tokens: 24, features: 6}}\n"
    "  - {name: table, kind: relative_position_bias, entries: 9, heads: 2, window: 4}\n"
    "  - {name: mlp, kind: relative_position_bias, entries: 9, heads: 2, window: 4, hidden: 5}\n"
    "  - {name: qkv, kind: linear, outputs: 18, input: windows}\n"
    "  - {name: attention, kind: attention, heads: 2, window: 4, learned_scale: true, inputs: "
    "[qkv, table]}\n"
    "  - {name: second, kind: attention, heads: 2, window: 4, inputs: [attention, attention, "
    "attention, mlp]}\n"
    "  - {name: token, kind: class_token}\n"
    "  - {name: places, kind: embedding, of: positions, entries: 25, features: 6}\n"
    "  - {name: sum, kind: add, inputs: [token, places]}\n"
    "  - {name: mean, kind: mean_token}\n"
    "  - {name: loss, kind: softmax_cross_entropy}\n";

TEST(AttentionOverImagesYaml, IsReadAndWritten) {
  // The bias of the first attention stands before another, which reads it for its place alone.
  const Network network = parse_network_yaml(document, "net.yaml");
  EXPECT_EQ(to_yaml(network), document);
  EXPECT_EQ(infer_shapes(network).back(), Shape::vector(1));
}

TEST(AttentionOverImagesYaml, FaultsNameTheLayer) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"kind: rearrange, output: [3, 8]",
       "net.yaml:4:40: output is no shape; write output: [channels, height, width], output: "
       "[features] or output: {tokens: N}"},
      {"kind: rearrange, output: [3, 8, 9]",
       "net.yaml:4:5: layer 'a': rearranges 3x8x8 to 3x8x9; an output must have as many elements"},
      {"kind: rearrange, output: {tokens: 64, features: 3}, view: maybe",
       "net.yaml:4:73: view: 'maybe' is no truth value; write true or false"},
      {"kind: slice, output: [192]",
       "net.yaml:4:5: layer 'a': a slice 192 of 3x8x8; an output must have fewer elements"},
      {"kind: pad, output: [4, 8, 8]",
       "net.yaml:4:5: layer 'a': pads 3x8x8 to 4x8x8; an output may be larger in height, width or "
       "elements only"},
      {"kind: multiply, input: input",
       "net.yaml:4:5: layer 'a': multiply takes two inputs, and has 1; write inputs: [a, b]"},
      {"kind: class_token",
       "net.yaml:4:5: layer 'a': class_token needs a sequence, and reads an image 3x8x8; let it "
       "read a sequence"},
      {"kind: mean_token",
       "net.yaml:4:5: layer 'a': mean_token needs a sequence, and reads an image 3x8x8; let it "
       "read a sequence"},
      {"kind: stochastic_depth, probability: 2",
       "net.yaml:4:52: probability: '2' is not a number from 0 to 1"},
      {"kind: relative_position_bias, entries: 9, heads: 2",
       "net.yaml:4:5: a layer of kind relative_position_bias has no 'window'; add window: ..."},
      {"kind: embedding, of: positions, entries: 3, features: 2",
       "net.yaml:4:5: layer 'a': embedding needs a sequence, and reads an image 3x8x8; let it read "
       "a sequence"},
  };
  for (const auto& [layer, error] : faults)
    EXPECT_EQ(error_of([&] {
                return parse_network_yaml(
                    "network: toy\ninput: [3, 8, 8]\nlayers:\n  - {name: a, " + layer + "}\n",
                    "net.yaml");
              }),
              error);
}

TEST(AttentionOverImages, WhatDoesNotFitIsRefused) {
  EXPECT_EQ(error_of([] { return work(windows(10, 6, {.heads = 2, .window = 4}, 0).build()); }),
            "layer 'attention': windows of 4 do not divide 10 elements; choose windows that do");
  EXPECT_EQ(error_of([] {
              NetworkBuilder net("net", Shape::sequence(8, 6));
              net.add("table", RelativePositionBias{.entries = 9, .heads = 2, .window = 8});
              net.add("qkv", Linear{18}, {"input"});
              net.add("a", Attention{.heads = 2, .window = 4}, {"qkv", "table"});
              return work(net.build());
            }),
            "layer 'a': the bias of its scores is an image 2x8x8; let it read a "
            "relative_position_bias, an image 2x4x4, or queries, keys and values");
  EXPECT_EQ(error_of([] {
              NetworkBuilder net("net", image);
              net.add("a", Relu{});
              net.add("pool", AdaptiveAveragePool{square(2)});
              net.add("product", Multiply{}, {"a", "pool"});
              return work(net.build());
            }),
            "layer 'product': multiplies 4x8x6 by 4x2x2; the second input has the shape of the "
            "first, or a number for each of its channels");
}

// A fixed rearrangement says so where the sequence has another length.
TEST(AttentionOverImages, AnotherSequenceDoesNotFitAFixedShape) {
  NetworkBuilder net("net", Shape::sequence(16, 4));
  net.add("windows", Rearrange{Shape::sequence(16, 4)});
  const Network network = net.build();
  EXPECT_EQ(error_of([&] { return work(network.with_sequence(8)); }),
            "layer 'windows': rearranges 8x4 to 16x4; an output must have as many elements");
  EXPECT_EQ(error_of([] {
              NetworkBuilder vit("vit", Shape::image(3, 8, 8));
              vit.add("patches", Rearrange{Shape::sequence(64, 3), true});
              return vit.build().with_sequence(197);
            }),
            "network 'vit' reads no sequence; leave the length of a sequence out");
}

}  // namespace
}  // namespace paceline::models
