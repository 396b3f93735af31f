// BF16 and FP16 against FP32 and against the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>

#include "models/network/zoo.h"
#include "runtime/network/rounding.h"
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

// ReLUs and maxima have kinks. An element that is nearer to a kink than its error e may fall on the
// other side of it. A share of about e of all elements does, and each errs by its own size. These
// errors add up as their root, too.
double kinked_tolerance(const Network& network, NumberType type) {
  return 2 * std::sqrt(smooth_tolerance(network, type));
}

constexpr NumberType half_types[] = {NumberType::bf16, NumberType::fp16};

const float infinity = std::numeric_limits<float>::infinity();

TEST(RoundTo, Fp16TakesTheNearestTiesToEvenAndOverflows) {
  // 2049 lies between 2048 and 2050, 65520 between 65504 and 2^16; 2^-25 is half the smallest.
  std::vector<float> values{1, 2049, 2051, 65519, 65520, -1e9F, 0x1p-24F, 0x1p-25F};
  round_to(NumberType::fp16, values);
  EXPECT_EQ(values, (std::vector<float>{1, 2048, 2052, 65504, infinity, -infinity, 0x1p-24F, 0}));
}

TEST(RoundTo, Bf16TakesTheNearestTiesToEvenAndOverflows) {
  // 257 lies between 256 and 258, 259 between 258 and 260; 0x1.ffp127 is half a step above the
  // largest.
  std::vector<float> values{1, 257, 259, 65520, 0x1.feffp127F, -0x1.ffp127F, 0x1p-133F, 0x1p-134F};
  round_to(NumberType::bf16, values);
  EXPECT_EQ(values, (std::vector<float>{1, 256, 260, 65536, 0x1.fep127F, -infinity, 0x1p-133F, 0}));
}

TEST(RoundTo, Fp32ChangesNothing) {
  std::vector<float> values{1 + 0x1p-23F, -0x1p-149F};
  round_to(NumberType::fp32, values);
  EXPECT_EQ(values, (std::vector<float>{1 + 0x1p-23F, -0x1p-149F}));
}

TEST(RoundTo, TakesArraysOfAnyLength) {
  for (const NumberType type : half_types)
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{4095},
                                    std::size_t{4097}, std::size_t{20000}}) {
      std::vector<float> values(count, 1 + 0x1p-12F);
      round_to(type, values);
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

// A small network with the branches of Inception.
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

// FP16 in its only form, and BF16 in each that this CPU has.
struct Mode {
  NumberType storage;
  Arithmetic arithmetic;
};
constexpr Mode half_modes[] = {{NumberType::fp16, Arithmetic::best},
                               {NumberType::bf16, Arithmetic::best},
                               {NumberType::bf16, Arithmetic::fp32}};

TEST(NetworkModes, ArithmeticIsFp32OrWhatTheCpuHas) {
  const Network network = smooth_network();
  const auto arithmetic = [&](NumberType storage, Arithmetic wanted) {
    return CpuNetwork(network, {.storage = storage, .arithmetic = wanted}).arithmetic();
  };
  EXPECT_EQ(arithmetic(NumberType::bf16, Arithmetic::fp32), NumberType::fp32);
  for (const NumberType storage : {NumberType::fp32, NumberType::fp16})
    for (const Arithmetic wanted : {Arithmetic::best, Arithmetic::fp32})
      EXPECT_EQ(arithmetic(storage, wanted), NumberType::fp32);
  // oneDNN 2.6 has BF16 arithmetic where it may use AVX-512 with byte and word instructions.
  const bool has_avx512 = (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) &
                           dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
  EXPECT_EQ(arithmetic(NumberType::bf16, Arithmetic::best),
            has_avx512 ? NumberType::bf16 : NumberType::fp32);
}

TEST(NetworkModes, SmoothLayersErrByTheirRoundoff) {
  const Network network = smooth_network();
  const NetworkTrial trial(network, 16);
  const Gradients exact = trial.of_reference();
  EXPECT_LT(relative_error(trial.of_mode(NumberType::fp32).weights, exact.weights), 2e-5);
  for (const auto& [type, arithmetic] : half_modes) {
    const Gradients made = trial.of_mode(type, loss_scale, arithmetic);
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
    for (const auto& [type, arithmetic] : half_modes) {
      const Gradients made = trial.of_mode(type, loss_scale, arithmetic);
      SCOPED_TRACE(network.name());
      EXPECT_LT(relative_error(made.logits, exact.logits), smooth_tolerance(network, type));
      EXPECT_LT(relative_error(made.weights, exact.weights), kinked_tolerance(network, type));
    }
  }
}

// Runs where oneDNN has BF16 arithmetic: BF16 there, and the same in FP32.
class FormsOfBf16 : public ::testing::Test {
 protected:
  void SetUp() override {
    const CpuNetwork network(smooth_network(), {.storage = NumberType::bf16});
    if (network.arithmetic() != NumberType::bf16)
      GTEST_SKIP() << "oneDNN has no BF16 arithmetic on this CPU, so there is one form only";
  }

  struct Difference {
    double logits = 0;
    double weights = 0;
  };
  static Difference difference(const Network& network) {
    const NetworkTrial trial(network, 16);
    const Gradients narrow = trial.of_mode(NumberType::bf16, loss_scale, Arithmetic::best);
    const Gradients wide = trial.of_mode(NumberType::bf16, loss_scale, Arithmetic::fp32);
    return {relative_error(narrow.logits, wide.logits),
            relative_error(narrow.weights, wide.weights)};
  }
};

// A layer between a convolution and a fully connected layer.
Network around(const models::LayerKind& layer) {
  NetworkBuilder net("around", Shape::image(3, 12, 12));
  net.add("conv", models::Convolution{
                      .channels = 16, .kernel = square(3), .padding = square(1), .bias = true});
  net.add("layer", layer);
  net.add("flatten", models::Flatten{});
  net.add("fc", models::FullyConnected{5});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

// A rounding that one form has and the other lacks errs by about a third of the unit roundoff. The
// order of sums, which may differ, changes the rounding of few elements.
TEST_F(FormsOfBf16, RoundAtTheSamePlaces) {
  const models::LayerKind layers[] = {
      models::Relu{},
      models::BatchNorm{},
      models::Dropout{0.25},
      models::AveragePool{{.kernel = square(2), .stride = square(2)}},
      models::AdaptiveAveragePool{{2, 3}},
      models::AdaptiveAveragePool{{5, 5}},
      models::Convolution{.channels = 16, .kernel = square(3), .bias = true},
      models::FullyConnected{24}};
  for (const models::LayerKind& layer : layers) {
    const auto [logits, weights] = difference(around(layer));
    SCOPED_TRACE(layer.index());
    EXPECT_LT(logits, 0x1p-8 / 64);
    EXPECT_LT(weights, 0x1p-8 / 64);
  }
}

// oneDNN rounds partial sums of the gradient where windows overlap. With LRN of three channels it
// does so only in the form for channels that come last, which CPUs with AMX take.
TEST_F(FormsOfBf16, DifferByPartialSumsOfOverlappingWindows) {
  const models::Pool pool{.kernel = square(3), .stride = square(2)};
  for (const models::LayerKind& layer :
       {models::LayerKind(models::AveragePool{pool}), models::LayerKind(models::MaxPool{pool}),
        models::LayerKind(models::Lrn{3}), models::LayerKind(models::Lrn{5})}) {
    const auto [logits, weights] = difference(around(layer));
    SCOPED_TRACE(layer.index());
    EXPECT_LT(logits, 0x1p-8 / 64);
    EXPECT_LT(weights, 0x1p-8 / 8);
  }
}

// Their difference is far below that of either to FP32, unless ReLUs and maxima enlarge it.
TEST_F(FormsOfBf16, AgreeOnWholeNetworks) {
  for (const Network& network :
       {smooth_network(), inception_like(), models::zoo_network("cnn-small"),
        models::zoo_network("resnet-small")}) {
    const auto [logits, weights] = difference(network);
    SCOPED_TRACE(network.name());
    EXPECT_LT(logits, smooth_tolerance(network, NumberType::bf16) / 4);
    EXPECT_LT(weights, kinked_tolerance(network, NumberType::bf16) / 4);
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
  round_to(NumberType::fp16, rounded);
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
