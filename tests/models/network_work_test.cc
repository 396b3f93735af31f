// Shapes and work against counts that are made another way: windows by walking over the input,
// multiply-adds by summing over outputs, traffic by hand.
#include "models/network/work.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/network/shape_inference.h"
#include "models/network/yaml.h"
#include "models/network/zoo.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

// Windows of one dimension, walked: they start at -padding, and go on while they end inside the
// padded input, or, rounding up, while they still start before its right padding.
std::int64_t walked_windows(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                            std::int64_t padding, std::int64_t dilation, bool ceil) {
  const std::int64_t span = dilation * (kernel - 1) + 1;
  std::int64_t count = 0;
  std::int64_t start = -padding;
  for (; start + span <= size + padding; start += stride) ++count;
  if (count == 0) return 0;
  const bool reached_the_end = start - stride + span == size + padding;
  if (ceil && !reached_the_end && start < size) ++count;
  return count;
}

RC_GTEST_PROP(ShapeInference, ConvolutionCountsTheWindowsThatFit, ()) {
  const Shape in = Shape::image(4, *rc::gen::inRange(1, 40), *rc::gen::inRange(1, 40));
  const auto extent = [](int low, int high) {
    return Extent{*rc::gen::inRange(low, high), *rc::gen::inRange(low, high)};
  };
  const Convolution c{.channels = 6,
                      .kernel = extent(1, 8),
                      .stride = extent(1, 5),
                      .padding = extent(0, 5),
                      .dilation = extent(1, 4),
                      .groups = *rc::gen::element(1, 2)};
  NetworkBuilder net("net", in);
  net.add("a", c);
  const std::int64_t height = walked_windows(in.height, c.kernel.height, c.stride.height,
                                             c.padding.height, c.dilation.height, false);
  const std::int64_t width = walked_windows(in.width, c.kernel.width, c.stride.width,
                                            c.padding.width, c.dilation.width, false);
  if (height == 0 || width == 0) {
    RC_ASSERT(test::error_of([&] { return infer_shapes(net.build()); }) != "no error");
    return;
  }
  const NetworkWork result = work(net.build());
  RC_ASSERT(result.layers[0].output == Shape::image(6, height, width));
  // Each output element is a dot product over its group's window.
  RC_ASSERT(result.forward_flops() ==
            2 * (6 * height * width) * (4 / c.groups) * c.kernel.height * c.kernel.width);
  RC_ASSERT(result.parameters() == 6 * (4 / c.groups) * c.kernel.height * c.kernel.width + 6);
}

RC_GTEST_PROP(ShapeInference, PoolingCountsTheWindowsThatFitOrStartInside, ()) {
  const std::int64_t size = *rc::gen::inRange(1, 40);
  const std::int64_t kernel = *rc::gen::inRange(1, 8);
  const std::int64_t stride = *rc::gen::inRange(1, 6);
  const std::int64_t padding = *rc::gen::inRange<std::int64_t>(0, kernel / 2 + 1);
  const bool ceil = *rc::gen::arbitrary<bool>();
  NetworkBuilder net("net", Shape::image(3, size, 50));
  net.add(
      "a",
      MaxPool{
          {.kernel = {kernel, 1}, .stride = {stride, 1}, .padding = {padding, 0}, .ceil = ceil}});
  const std::int64_t height = walked_windows(size, kernel, stride, padding, 1, ceil);
  if (height == 0) {
    RC_ASSERT(test::error_of([&] { return infer_shapes(net.build()); }) != "no error");
  } else {
    RC_ASSERT(infer_shapes(net.build()).back() == Shape::image(3, height, 50));
  }
}

// A random network of image layers: each reads any layer before it, and what nothing reads is
// pooled to one size and concatenated at the end.
Network random_network() {
  NetworkBuilder net("random", Shape::image(*rc::gen::inRange(1, 5), 16, 16), Bytes{784});
  std::vector<std::string> layers = {"input"};
  std::vector<bool> is_read = {true};
  const int count = *rc::gen::inRange(1, 12);
  for (int i = 0; i < count; ++i) {
    const auto reads = *rc::gen::inRange<std::size_t>(0, layers.size());
    const auto kind = *rc::gen::element<LayerKind>(
        Convolution{.channels = 4, .kernel = {1, 3}, .padding = {0, 1}, .bias = false},
        Convolution{
            .channels = 3, .kernel = square(3), .padding = square(2), .dilation = square(2)},
        BatchNorm{}, Relu{}, Lrn{3}, Dropout{0.25}, StochasticDepth{0.25}, Scale{}, Scale{false},
        LayerNorm{false}, Linear{5}, AdaptiveAveragePool{{16, 4}},
        MaxPool{{.kernel = square(3), .padding = square(1), .ceil = true}},
        AveragePool{{.kernel = {1, 3}, .padding = {0, 1}}});
    is_read[reads] = true;
    layers.push_back(net.add("layer" + std::to_string(i), kind, {layers[reads]}));
    is_read.push_back(false);
  }
  std::vector<std::string> ends;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!is_read[i])
      ends.push_back(net.add(layers[i] + "_pool", AdaptiveAveragePool{square(2)}, {layers[i]}));
  }
  if (ends.size() > 1) ends = {net.add("concat", Concat{}, ends)};
  net.add("fc", FullyConnected{10}, {ends[0]});
  net.add("loss", SoftmaxCrossEntropy{});
  return net.build();
}

RC_GTEST_PROP(NetworkYaml, RandomNetworksGoThroughYaml, ()) {
  const Network network = random_network();
  RC_ASSERT(parse_network_yaml(to_yaml(network), "net.yaml") == network);
}

RC_GTEST_PROP(Work, TotalsAreSumsOverLayersAndGradientsReverseTheTensors, ()) {
  const NetworkWork net = work(random_network());
  std::int64_t flops = 0;
  std::int64_t gradient_flops = 0;
  std::int64_t kept = 0;
  std::vector<std::string> names;
  for (const LayerWork& layer : net.layers) {
    flops += layer.forward_flops;
    gradient_flops += layer.data_gradient_flops + layer.weight_gradient_flops;
    kept += layer.kept;
    for (const ParameterTensor& tensor : layer.parameters) {
      names.push_back(tensor.name);
      std::int64_t elements = 1;
      for (const std::int64_t size : tensor.shape) elements *= size;
      RC_ASSERT(elements == tensor.elements);
    }
  }
  RC_ASSERT(net.forward_flops() == flops);
  RC_ASSERT(net.backward_flops() == gradient_flops);
  RC_ASSERT(net.kept() == kept);
  RC_ASSERT(net.gradients.size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    RC_ASSERT(net.gradients[names.size() - 1 - i].name == names[i]);
}

RC_GTEST_PROP(Work, MoreOutputsScaleFlopsAndWeights, ()) {
  const std::int64_t features = *rc::gen::inRange(1, 100);
  const std::int64_t outputs = *rc::gen::inRange(1, 100);
  const std::int64_t factor = *rc::gen::inRange(1, 10);
  const auto one = [features](std::int64_t n) {
    NetworkBuilder net("net", Shape::vector(features));
    net.add("fc", FullyConnected{n, false});
    return work(net.build());
  };
  RC_ASSERT(one(factor * outputs).forward_flops() == factor * one(outputs).forward_flops());
  RC_ASSERT(one(factor * outputs).parameters() == factor * one(outputs).parameters());
  RC_ASSERT(one(outputs).layers[0].kept == features);
}

struct Moved {
  std::int64_t forward_read, forward_written, backward_read, backward_written, kept;
  bool operator==(const Moved&) const = default;
};

void PrintTo(const Moved& m, std::ostream* out) {
  *out << m.forward_read << ' ' << m.forward_written << ' ' << m.backward_read << ' '
       << m.backward_written << ' ' << m.kept;
}

// What a layer that reads a 4x8x8 image (256 elements), not the network's input, moves and keeps.
Moved moved_by(LayerKind kind) {
  NetworkBuilder net("net", Shape::image(4, 8, 8));
  net.add("before", Relu{});
  const bool many = takes_many(kind);
  net.add("layer", std::move(kind),
          many ? std::vector<std::string>{"before", "before"} : std::vector<std::string>{"before"});
  const LayerWork l = work(net.build()).layers[1];
  return {l.forward_read, l.forward_written, l.backward_read, l.backward_written, l.kept};
}

// The conventions that work.h states, one line each.
TEST(Work, TrafficByHand) {
  const Pool halves{.kernel = square(2), .stride = square(2)};  // to 4x4x4 = 64 elements
  // Backward reads the input once and the output's gradient twice, once for each product.
  EXPECT_EQ(moved_by(Convolution{.channels = 2, .kernel = square(1)}),
            (Moved{256, 128, 256 + 2 * 128, 256, 256}));
  EXPECT_EQ(moved_by(FullyConnected{10}), (Moved{256, 10, 256 + 2 * 10, 256, 256}));
  EXPECT_EQ(moved_by(BatchNorm{}), (Moved{512, 256, 1024, 256, 256}));
  EXPECT_EQ(moved_by(Relu{}), (Moved{256, 256, 512, 256, 256}));
  EXPECT_EQ(moved_by(MaxPool{halves}), (Moved{256, 128, 128, 256, 64}));
  EXPECT_EQ(moved_by(AveragePool{halves}), (Moved{256, 64, 64, 256, 0}));
  EXPECT_EQ(moved_by(AdaptiveAveragePool{square(1)}), (Moved{256, 4, 4, 256, 0}));
  EXPECT_EQ(moved_by(Lrn{}), (Moved{256, 512, 1024, 256, 512}));
  EXPECT_EQ(moved_by(Dropout{}), (Moved{256, 512, 512, 256, 256}));
  EXPECT_EQ(moved_by(Add{}), (Moved{512, 256, 0, 0, 0}));
  EXPECT_EQ(moved_by(Concat{}), (Moved{512, 512, 512, 512, 0}));
  EXPECT_EQ(moved_by(Flatten{}), (Moved{0, 0, 0, 0, 0}));
}

TEST(Work, OnlyMatrixProductsHaveFlopsAndBiasAddsNone) {
  for (const ZooEntry& entry : zoo()) {
    for (const LayerWork& layer : work(entry.build()).layers) {
      const bool is_product = layer.kind == "convolution" || layer.kind == "fully_connected" ||
                              layer.kind == "linear" || layer.kind == "tied_linear" ||
                              layer.kind == "attention" || layer.kind == "route_tokens" ||
                              layer.kind == "expert_linear";
      EXPECT_EQ(layer.forward_flops > 0, is_product) << layer.name;
    }
  }
  const auto flops = [](bool bias) {
    NetworkBuilder net("net", Shape::vector(7));
    net.add("fc", FullyConnected{5, bias});
    return work(net.build()).forward_flops();
  };
  EXPECT_EQ(flops(true), 2 * 7 * 5);
  EXPECT_EQ(flops(false), 2 * 7 * 5);
}

TEST(Work, ALayerThatSeesTheInputOnlyHasNoDataGradient) {
  NetworkBuilder net("net", Shape::image(3, 8, 8));
  net.add("first", Convolution{.channels = 4, .kernel = square(1)});
  net.add("also_first", Convolution{.channels = 4, .kernel = square(1)}, {"input"});
  net.add("sum", Add{}, {"first", "also_first"});
  net.add("second", Convolution{.channels = 4, .kernel = square(1)});
  const NetworkWork result = work(net.build());
  EXPECT_EQ(result.layers[0].data_gradient_flops, 0);
  EXPECT_EQ(result.layers[0].backward_written, 0);
  EXPECT_EQ(result.layers[1].data_gradient_flops, 0);
  EXPECT_EQ(result.layers[3].data_gradient_flops, result.layers[3].forward_flops);
}

// The refined form has a batch norm of 256 channels more, and its total is in a published list.
TEST(Zoo, AlexNetWithBatchNormLacksOnlyTheNormAfterPool5) {
  const NetworkWork plain = work(zoo_network("alexnet-bn"));
  const NetworkWork refined = work(zoo_network("alexnet-bn-refined"));
  EXPECT_EQ(plain.parameters(), 62396616 - 2 * 256);
  EXPECT_EQ(plain.gradients.size() + 2, refined.gradients.size());
  EXPECT_EQ(plain.forward_flops(), refined.forward_flops());
}

TEST(Zoo, EachNetworkEndsInItsLossAndStatesItsInput) {
  for (const ZooEntry& entry : zoo()) {
    const Network network = entry.build();
    EXPECT_FALSE(entry.description.empty());
    if (network.input().is_sequence) continue;         // tests/models/transformer_test.cc
    const bool has_heads = entry.name == "googlenet";  // whose losses it adds
    EXPECT_EQ(name(network.layers().back().kind), has_heads ? "add" : "softmax_cross_entropy")
        << entry.name;
    const bool is_small = entry.name.ends_with("-small");
    EXPECT_EQ(network.stored_sample_bytes(), Bytes{is_small ? 784.0 : 112e3}) << entry.name;
    const std::vector<Shape> shapes = infer_shapes(network);
    const std::size_t logits = shapes.size() - (has_heads ? 3 : 2);
    EXPECT_EQ(shapes[logits], Shape::vector(is_small ? 10 : 1000)) << entry.name;
  }
}

// Scaled counts equal those of the network at the other length, except for rounding.
TEST(Work, ScalesToAnotherLength) {
  for (const char* name : {"llama-3-8b", "mistral-7b"}) {
    const Network network = zoo_network(name);
    const std::int64_t own = network.input().height;
    const NetworkWork longer = work(network.with_sequence(2 * own));
    const NetworkWork scaled = scaled_to(work(network), 2 * own);
    ASSERT_EQ(scaled.sequence, longer.sequence);
    for (std::size_t i = 0; i < longer.layers.size(); ++i) {
      EXPECT_EQ(scaled.layers[i].stored, longer.layers[i].stored) << longer.layers[i].name;
      EXPECT_EQ(scaled.layers[i].forward_read, longer.layers[i].forward_read);
      EXPECT_EQ(scaled.layers[i].square_flops, longer.layers[i].square_flops);
      EXPECT_NEAR(
          static_cast<double>(scaled.layers[i].forward_flops) /
              static_cast<double>(std::max<std::int64_t>(1, longer.layers[i].forward_flops)),
          longer.layers[i].forward_flops > 0 ? 1.0 : 0.0, 0.15);
    }
  }
}

}  // namespace
}  // namespace paceline::models
