// BF16 and FP16 against FP32 and against the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "models/network/zoo.h"
#include "runtime/network/fp16.h"
#include "tests/support/network_trial.h"

namespace paceline::runtime {
namespace {

using models::Network;
using models::NetworkBuilder;
using models::NumberType;
using models::Shape;
using models::square;
using test::Doubles;
using test::Gradients;
using test::NetworkTrial;
using test::relative_error;

// Half the distance of 1 to the next number.
double unit_roundoff(NumberType type) {
  if (type == NumberType::fp32) return 0x1p-24;
  return type == NumberType::bf16 ? 0x1p-8 : 0x1p-11;
}

// A layer rounds its operands and its results, forward and backward: some four independent errors
// of at most u each, and those of `layers` layers add up as their root.
double smooth_tolerance(const Network& network, NumberType type) {
  const auto layers = static_cast<double>(network.layers().size());
  return 4 * std::sqrt(layers) * unit_roundoff(type);
}

// Where there are ReLUs and maxima, an element as near to a kink as its error e is falls on the
// other side of it: a share of about e of all, each of which errs by its size. These add up as
// their root, too.
double kinked_tolerance(const Network& network, NumberType type) {
  return 2 * std::sqrt(smooth_tolerance(network, type));
}

constexpr NumberType half_types[] = {NumberType::bf16, NumberType::fp16};

TEST(Fp16, RoundsToNearestEvenAndOverflows) {
  // 2049 lies between 2048 and 2050, 65520 between 65504 and 2^16; 2^-25 is half the smallest.
  std::vector<float> values{1, 2049, 2051, 65519, 65520, -1e9F, 0x1p-24F, 0x1p-25F};
  round_to_fp16(values);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(values, (std::vector<float>{1, 2048, 2052, 65504, infinity, -infinity, 0x1p-24F, 0}));
}

TEST(Fp16, RoundsArraysOfAnyLength) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{4095}, std::size_t{4097}, std::size_t{20000}}) {
    std::vector<float> values(count, 1 + 0x1p-12F);
    round_to_fp16(values);
    EXPECT_EQ(values, std::vector<float>(count, 1.0F));
  }
}

// Every smooth kind of layer.
Network smooth_network() {
  NetworkBuilder net("smooth", Shape::image(3, 12, 12));
  const models::Convolution convolution{
      .channels = 16, .kernel = square(3), .padding = square(1), .bias = true};
  net.add("conv1", convolution);
  net.add("norm", models::Lrn{3});
  net.add("conv2", convolution);
  net.add("bn", models::BatchNorm{});
  net.add("add", models::Add{}, {"bn", "norm"});
  net.add("pool", models::AveragePool{{.kernel = square(3), .stride = square(2)}});
  net.add("dropout", models::Dropout{0.25});
  net.add("joined", models::Concat{}, {"dropout", "pool"});
  net.add("adaptive", models::AdaptiveAveragePool{{2, 3}});
  net.add("flatten", models::Flatten{});
  net.add("fc1", models::FullyConnected{24});
  net.add("bn_of_vector", models::BatchNorm{});
  net.add("fc2", models::FullyConnected{5});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

// As Inception's, in small.
Network inception_like() {
  NetworkBuilder net("inception-like", Shape::image(3, 15, 15));
  const auto unit = [&](const std::string& name, std::int64_t channels, std::int64_t kernel,
                        const std::string& input) {
    net.add(name,
            models::Convolution{.channels = channels,
                                .kernel = square(kernel),
                                .padding = square(kernel / 2),
                                .bias = false},
            {input});
    net.add(name + "_bn", models::BatchNorm{});
    return net.add(name + "_relu", models::Relu{});
  };
  const std::string stem = unit("stem", 16, 3, "input");
  const std::string one = unit("one", 16, 1, stem);
  const std::string three = unit("three", 24, 3, unit("three_in", 8, 1, stem));
  net.add("average", models::AveragePool{{.kernel = square(3), .padding = square(1)}}, {stem});
  const std::string pooled = unit("pooled", 16, 1, "average");
  net.add("mixed", models::Concat{}, {one, three, pooled});
  net.add("reduce", models::MaxPool{{.kernel = square(3), .stride = square(2)}});
  net.add("pool", models::AdaptiveAveragePool{square(1)});
  net.add("flatten", models::Flatten{});
  net.add("fc", models::FullyConnected{10});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

// A loss of 2^10, so that FP16 keeps small gradients.
constexpr float loss_scale = 1024;

TEST(NetworkModes, SmoothLayersErrByTheirRoundoff) {
  const Network network = smooth_network();
  const NetworkTrial trial(network, 16);
  const Gradients exact = trial.of_reference();
  EXPECT_LT(relative_error(trial.of_mode(NumberType::fp32).weights, exact.weights), 2e-5);
  for (const NumberType type : half_types) {
    const Gradients made = trial.of_mode(type, loss_scale);
    const double tolerance = smooth_tolerance(network, type);
    EXPECT_LT(relative_error(made.logits, exact.logits), tolerance);
    EXPECT_LT(relative_error(made.weights, exact.weights), tolerance);
    // They do round: nothing is as good as FP32.
    EXPECT_GT(relative_error(made.weights, exact.weights), unit_roundoff(type) / 8);
  }
}

TEST(NetworkModes, WholeNetworksAgreeWithFp32) {
  for (const Network& network :
       {inception_like(), models::zoo_network("cnn-small"), models::zoo_network("resnet-small")}) {
    const NetworkTrial trial(network, 8);
    const Gradients exact = trial.of_mode(NumberType::fp32);
    for (const NumberType type : half_types) {
      const Gradients made = trial.of_mode(type, loss_scale);
      SCOPED_TRACE(network.name());
      EXPECT_LT(relative_error(made.logits, exact.logits), smooth_tolerance(network, type));
      EXPECT_LT(relative_error(made.weights, exact.weights), kinked_tolerance(network, type));
    }
  }
}

TEST(NetworkModes, WholeNetworksInFp32EqualTheReference) {
  for (const Network& network :
       {inception_like(), models::zoo_network("cnn-small"), models::zoo_network("resnet-small")}) {
    const NetworkTrial trial(network, 2);
    const Gradients exact = trial.of_reference();
    const Gradients made = trial.of_mode(NumberType::fp32);
    EXPECT_NEAR(made.loss, exact.loss, 1e-4);
    EXPECT_LT(relative_error(made.weights, exact.weights),
              kinked_tolerance(network, NumberType::fp32))
        << network.name();
  }
}

bool is_fp16(double value) {
  std::vector<float> rounded{static_cast<float>(value)};
  round_to_fp16(rounded);
  return rounded[0] == static_cast<float>(value);
}

TEST(NetworkModes, Fp16HasLogitsAndGradientsOfFp16) {
  const NetworkTrial trial(smooth_network(), 4);
  const Gradients made = trial.of_mode(NumberType::fp16, 1);
  for (const double logit : made.logits) EXPECT_TRUE(is_fp16(logit));
  for (const ParameterPlace& place : parameter_places(trial.network())) {
    if (place.role == ParameterRole::gamma || place.role == ParameterRole::beta) continue;
    for (std::int64_t i = place.offset; i < place.offset + place.elements; ++i)
      ASSERT_TRUE(is_fp16(made.weights[static_cast<std::size_t>(i)])) << place.name;
  }
}

TEST(NetworkModes, ScalingTheLossByAPowerOfTwoChangesNoBitOfFp32) {
  const NetworkTrial trial(smooth_network(), 4);
  EXPECT_EQ(trial.of_mode(NumberType::fp32, 1).weights,
            trial.of_mode(NumberType::fp32, 1024).weights);
}

TEST(NetworkModes, Fp16OverflowsAtALargeLossScale) {
  const NetworkTrial trial(models::zoo_network("cnn-small"), 8);
  const auto has_infinity = [&](NumberType type, float scale) {
    const Doubles gradients = trial.of_mode(type, scale).weights;
    return std::any_of(gradients.begin(), gradients.end(),
                       [](double g) { return !std::isfinite(g); });
  };
  EXPECT_FALSE(has_infinity(NumberType::fp16, 64));
  EXPECT_TRUE(has_infinity(NumberType::fp16, 0x1p24F));
  EXPECT_FALSE(has_infinity(NumberType::fp32, 0x1p24F));
  EXPECT_FALSE(has_infinity(NumberType::bf16, 0x1p24F));
}

}  // namespace
}  // namespace paceline::runtime
