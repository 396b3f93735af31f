// Each kind of layer, forward and backward, against the reference in double precision, which is
// held against finite differences of its own loss.
#include <gtest/gtest.h>

#include "tests/support/network_trial.h"

namespace paceline::runtime {
namespace {

using models::Extent;
using models::LayerKind;
using models::Network;
using models::NetworkBuilder;
using models::NumberType;
using models::Shape;
using models::square;
using test::distance;
using test::Doubles;
using test::expect_equal;
using test::Gradients;
using test::NetworkTrial;
using test::norm;
using test::relative_error;

// Sums of a few thousand products in FP32 lose some ten units of roundoff, which is 2^-24.
constexpr double fp32_tolerance = 2e-5;

// A convolution, so that the layer's data gradient shows in its weights; the layer; a loss.
Network around(const LayerKind& kind, const Shape& input, std::int64_t channels = 6) {
  NetworkBuilder net("around", input);
  net.add("before",
          models::Convolution{
              .channels = channels, .kernel = square(3), .padding = square(1), .bias = true});
  net.add("layer", kind);
  net.add("flatten", models::Flatten{});
  net.add("fc", models::FullyConnected{7});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

void expect_like_reference(const Network& network, int batch, std::uint64_t seed = 1) {
  const NetworkTrial trial(network, batch, seed);
  expect_equal(trial.of_mode(NumberType::fp32), trial.of_reference(), fp32_tolerance, network);
}

void expect_reference_differentiates(const Network& network) {
  test::expect_reference_differentiates(NetworkTrial(network, 3));
}

const std::vector<LayerKind>& kinds() {
  static const std::vector<LayerKind> all = {
      models::Convolution{.channels = 4,
                          .kernel = {3, 2},
                          .stride = {1, 2},
                          .padding = {1, 0},
                          .dilation = {2, 1},
                          .groups = 2,
                          .bias = true},
      models::BatchNorm{},
      models::Relu{},
      models::MaxPool{{.kernel = square(3), .stride = square(2), .padding = square(1)}},
      models::AveragePool{{.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}, .ceil = true}},
      models::AdaptiveAveragePool{{3, 2}},
      models::Lrn{5},
      models::Dropout{0.4}};
  return all;
}

TEST(ReferenceNetwork, HasTheGradientOfFiniteDifferences) {
  for (const LayerKind& kind : kinds()) {
    SCOPED_TRACE(models::name(kind));
    expect_reference_differentiates(around(kind, Shape::image(2, 7, 5)));
  }
}

TEST(NetworkLayers, EqualTheReference) {
  for (const LayerKind& kind : kinds()) {
    SCOPED_TRACE(models::name(kind));
    for (const Shape& input : {Shape::image(2, 7, 5), Shape::image(3, 8, 8)})
      for (const std::int64_t channels : {4, 6, 16, 32})
        expect_like_reference(around(kind, input, channels), 3);
  }
}

std::int64_t drawn(Random& random, std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(random.below(static_cast<std::size_t>(most - least + 1)));
}
Extent drawn_extent(Random& random, std::int64_t least, std::int64_t most) {
  return {drawn(random, least, most), drawn(random, least, most)};
}

TEST(NetworkLayers, ConvolutionsOfRandomShapesEqualTheReference) {
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    const std::int64_t groups = drawn(random, 1, 3);
    const std::int64_t channels = groups * drawn(random, 1, 9);
    models::Convolution layer{.channels = groups * drawn(random, 1, 9),
                              .kernel = drawn_extent(random, 1, 4),
                              .stride = drawn_extent(random, 1, 3),
                              .padding = drawn_extent(random, 0, 2),
                              .dilation = drawn_extent(random, 1, 2),
                              .groups = groups,
                              .bias = drawn(random, 0, 1) == 1};
    const Shape input =
        Shape::image(drawn(random, 1, 3), drawn(random, 7, 12), drawn(random, 7, 12));
    SCOPED_TRACE(i);
    expect_like_reference(around(layer, input, channels), static_cast<int>(drawn(random, 1, 5)),
                          static_cast<std::uint64_t>(i));
  }
}

TEST(NetworkLayers, PoolsOfRandomShapesEqualTheReference) {
  Random random(4);
  for (int i = 0; i < 60; ++i) {
    models::Pool pool{.kernel = drawn_extent(random, 1, 4),
                      .stride = drawn_extent(random, 1, 3),
                      .ceil = drawn(random, 0, 1) == 1};
    pool.padding = {drawn(random, 0, pool.kernel.height / 2),
                    drawn(random, 0, pool.kernel.width / 2)};
    const Shape input =
        Shape::image(drawn(random, 1, 3), drawn(random, 4, 12), drawn(random, 4, 12));
    const std::int64_t channels = drawn(random, 1, 2) == 1 ? 16 : drawn(random, 1, 20);
    SCOPED_TRACE(i);
    expect_like_reference(around(models::MaxPool{pool}, input, channels), 2);
    expect_like_reference(around(models::AveragePool{pool}, input, channels), 2);
    expect_like_reference(
        around(models::AdaptiveAveragePool{drawn_extent(random, 1, 4)}, input, channels), 2);
  }
}

TEST(NetworkLayers, BatchNormOfVectorsEqualsTheReference) {
  NetworkBuilder net("vectors", Shape::image(2, 3, 3));
  net.add("fc1", models::FullyConnected{19, false});
  net.add("bn", models::BatchNorm{});
  net.add("relu", models::Relu{});
  net.add("dropout", models::Dropout{0.5});
  net.add("fc2", models::FullyConnected{5});
  net.add("loss", models::SoftmaxCrossEntropy{});
  expect_reference_differentiates(net.build());
  expect_like_reference(net.build(), 9);
}

// An add whose inputs are read by others, before it and after it, and which is read by another.
Network branches(std::int64_t channels, bool with_relu) {
  NetworkBuilder net("branches", Shape::image(2, 6, 6));
  const models::Convolution convolution{
      .channels = channels, .kernel = square(3), .padding = square(1), .bias = false};
  net.add("a", convolution);
  if (with_relu) net.add("a_relu", models::Relu{});
  const std::string a = with_relu ? "a_relu" : "a";
  net.add("b", convolution, {a});
  net.add("b_bn", models::BatchNorm{});
  net.add("sum1", models::Add{}, {"b_bn", a});
  if (with_relu) net.add("sum1_relu", models::Relu{});
  const std::string sum1 = with_relu ? "sum1_relu" : "sum1";
  net.add("c", convolution, {sum1});
  net.add("sum2", models::Add{}, {sum1, "c", a});
  net.add("sum3", models::Add{}, {"sum2", "sum2"});
  net.add("d", convolution, {sum1});
  net.add("joined", models::Concat{}, {"sum3", "d", "sum3", a});
  net.add("pool", models::AveragePool{{.kernel = square(2), .stride = square(2)}});
  net.add("flatten", models::Flatten{});
  net.add("fc", models::FullyConnected{4});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

TEST(NetworkLayers, BranchesEqualTheReference) {
  for (const bool with_relu : {false, true}) {
    for (const std::int64_t channels : {3, 16, 20}) {
      SCOPED_TRACE(channels);
      expect_like_reference(branches(channels, with_relu), 3);
    }
    expect_reference_differentiates(branches(3, with_relu));
  }
}

// Random graphs of convolutions, adds, concats and the rest: whatever the compiler shares,
// overwrites or fuses must not show.
Network random_graph(Random& random) {
  NetworkBuilder net("graph", Shape::image(2, 6, 5));
  const std::int64_t channels = drawn(random, 0, 1) == 0 ? 16 : 5;
  const auto convolution = [&] {
    return models::Convolution{.channels = channels,
                               .kernel = square(3),
                               .padding = square(1),
                               .bias = drawn(random, 0, 1) == 1};
  };
  std::vector<std::string> made{net.add("first", convolution(), {"input"})};
  std::vector<std::string> unread = made;
  const auto pick = [&] { return made[random.below(made.size())]; };
  const auto read = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names) std::erase(unread, name);
  };
  const std::int64_t layers = drawn(random, 3, 14);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    std::vector<std::string> inputs{drawn(random, 0, 2) == 0 ? pick() : made.back()};
    LayerKind kind = models::Relu{};
    switch (drawn(random, 0, 7)) {
      case 0:
      case 1:
        kind = convolution();
        break;
      case 2:
        kind = models::BatchNorm{};
        break;
      case 3:
        kind = models::Dropout{0.25};
        break;
      case 4:
      case 5:
        kind = models::Add{};
        inputs.push_back(pick());
        if (drawn(random, 0, 3) == 0) inputs.push_back(pick());
        break;
      case 6:
        kind = models::AveragePool{{.kernel = square(3), .padding = square(1)}};
        break;
      default:
        break;
    }
    net.add(name, kind, inputs);
    read(inputs);
    made.push_back(name);
    unread.push_back(name);
  }
  if (unread.size() > 1) net.add("joined", models::Concat{}, unread);
  net.add("flatten", models::Flatten{});
  net.add("fc", models::FullyConnected{4});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

TEST(NetworkLayers, RandomGraphsEqualTheReference) {
  Random random(5);
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(i);
    expect_like_reference(random_graph(random), 3, static_cast<std::uint64_t>(i));
  }
}

}  // namespace
}  // namespace paceline::runtime
