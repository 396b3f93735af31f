// Layers of transformers, forward and backward, against the reference in double precision, which is held against
// finite differences of its own loss, and against PyTorch (tests/cli/train_text_test.py).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/network_trial.h"

namespace paceline::runtime {
namespace {

using models::Attention;
using models::Embedding;
using models::LayerKind;
using models::Network;
using models::NetworkBuilder;
using models::NumberType;
using models::Shape;
using test::expect_equal;
using test::Gradients;
using test::NetworkTrial;
using test::norm;
using test::relative_error;

constexpr double fp32_tolerance = 2e-5;

struct Sizes {
  std::int64_t elements = 5;
  std::int64_t features = 8;
  std::int64_t tokens = 11;
  Attention attention = {.heads = 2, .causal = true, .fused = true};
  double dropout = 0;
  bool is_tied = true;
  models::LayerNorm norm = {};
  bool has_gate = false;  // SwiGLU; else GELU
};

// A block of GPT-2 or of Llama between its embeddings and its head.
Network transformer(const Sizes& s) {
  NetworkBuilder net("transformer", Shape::sequence(s.elements));
  const std::vector<std::string> embedded = {
      net.add("wte", Embedding{Embedding::Of::tokens, s.tokens, s.features}, {"input"}),
      net.add("wpe", Embedding{Embedding::Of::positions, s.elements + 3, s.features}, {"input"})};
  const std::string around = net.add("embeddings", models::Add{}, embedded);
  net.add("ln1", s.norm);
  const std::int64_t shared =
      s.attention.key_value_heads > 0 ? s.attention.key_value_heads : s.attention.heads;
  const std::int64_t width = s.features / s.attention.heads;
  if (shared == s.attention.heads) {
    net.add("qkv", models::Linear{3 * s.features});
    net.add("attn", s.attention);
  } else {
    const std::vector<std::string> operands = {
        net.add("q", models::Linear{s.features}, {"ln1"}),
        net.add("k", models::Linear{shared * width, false}, {"ln1"}),
        net.add("v", models::Linear{shared * width}, {"ln1"})};
    net.add("attn", s.attention, operands);
  }
  net.add("proj", models::Linear{s.features});
  if (s.dropout > 0) net.add("dropout", models::Dropout{s.dropout});
  const std::string middle =
      net.add("add1", models::Add{}, {s.dropout > 0 ? "dropout" : "proj", around});
  net.add("ln2", s.norm);
  if (s.has_gate) {
    net.add("gate", models::Linear{3 * s.features, false}, {"ln2"});
    net.add("silu", models::Silu{});
    net.add("up", models::Linear{3 * s.features, false}, {"ln2"});
    net.add("mul", models::Multiply{}, {"silu", "up"});
  } else {
    net.add("fc", models::Linear{3 * s.features});
    net.add("gelu", models::Gelu{});
  }
  net.add("out", models::Linear{s.features});
  net.add("add2", models::Add{}, {"out", middle});
  const std::string last = net.add("ln_f", s.norm);
  if (s.is_tied)
    net.add("logits", models::TiedLinear{}, {last, "wte"});
  else
    net.add("logits", models::Linear{s.tokens, false});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

// Weights of the size that they have in a trained network, so that no gradient is lost beside another.
NetworkTrial trial_of(const Network& network, int batch, std::uint64_t seed) {
  NetworkTrial trial(network, batch, seed);
  for (const ParameterPlace& place : parameter_places(network))
    if (place.role == ParameterRole::weight)
      for (std::int64_t i = place.offset; i < place.offset + place.elements; ++i)
        trial.weights()[static_cast<std::size_t>(i)] *= 15;
  return trial;
}

constexpr models::LayerNorm rms{.bias = false, .rms = true};

const std::vector<Sizes>& all_sizes() {
  static const std::vector<Sizes> all = {
      {},
      {.elements = 1, .attention = {.heads = 1, .causal = true}},
      {.elements = 7, .features = 12, .attention = {.heads = 3, .causal = false}},
      {.elements = 6,
       .features = 16,
       .attention = {.heads = 4, .key_value_heads = 2, .causal = true}},
      {.elements = 9,
       .features = 8,
       .attention = {.heads = 4, .key_value_heads = 1},
       .is_tied = false},
      {.elements = 7,
       .features = 16,
       .attention = {.heads = 4, .key_value_heads = 2, .causal = true, .rotary_base = 100},
       .is_tied = false,
       .norm = rms,
       .has_gate = true},
      {.elements = 6,
       .features = 12,
       .attention = {.heads = 2, .causal = true, .rotary_base = 50, .rotary_features = 4},
       .norm = {.bias = false}},
      {.elements = 130,
       .features = 72,
       .attention = {.heads = 2, .causal = true, .rotary_base = 1e4},
       .norm = rms,
       .has_gate = true},
      {.elements = 130, .features = 8, .attention = {.heads = 2, .causal = true}},
      {.elements = 66, .features = 24, .tokens = 300, .attention = {.heads = 2}, .dropout = 0.3}};
  return all;
}

TEST(NetworkSequences, ReferenceHasTheGradientOfFiniteDifferences) {
  for (std::size_t i = 0; i < 7; ++i) {
    SCOPED_TRACE(i);
    test::expect_reference_differentiates(trial_of(transformer(all_sizes()[i]), 2, 3));
  }
}

TEST(NetworkSequences, EqualTheReference) {
  for (const Sizes& sizes : all_sizes()) {
    SCOPED_TRACE(sizes.elements);
    const Network network = transformer(sizes);
    const NetworkTrial trial = trial_of(network, 3, 5);
    expect_equal(trial.of_mode(NumberType::fp32), trial.of_reference(), fp32_tolerance, network);
  }
}

// Storage of 16 bits rounds each tensor to 2^-8 or 2^-11; sums of a few roundings.
TEST(NetworkSequences, EqualTheReferenceInNarrowStorage) {
  for (const Sizes& sizes : all_sizes()) {
    SCOPED_TRACE(sizes.elements);
    const Network network = transformer(sizes);
    const NetworkTrial trial = trial_of(network, 3, 5);
    expect_equal(trial.of_mode(NumberType::bf16), trial.of_reference(), 0.06, network);
    expect_equal(trial.of_mode(NumberType::bf16, 1, Arithmetic::fp32), trial.of_reference(), 0.06,
                 network);
    expect_equal(trial.of_mode(NumberType::fp16, 256), trial.of_reference(), 0.008, network);
  }
}

TEST(NetworkSequences, GiveTheSameBitsOnAnyNumberOfThreads) {
  const Network network = transformer(all_sizes().back());
  const NetworkTrial trial = trial_of(network, 3, 5);
  const auto of_threads = [&](int threads) {
    CpuNetwork trained(network, {.batch = 3, .threads = threads});
    return trial.of(trained);
  };
  const Gradients one = of_threads(1);
  EXPECT_EQ(of_threads(1).weights, one.weights);
  // oneDNN shares the sums of its products out to threads, so that these may differ by rounding.
  EXPECT_LT(relative_error(of_threads(2).weights, one.weights), 1e-6);
}

// The mask of the backward pass is that of the forward pass: the loss falls by the square of the gradient along it.
TEST(NetworkSequences, DropTheSameScoresInBothPasses) {
  Sizes sizes{.elements = 70, .features = 16};
  sizes.attention.fused = false;
  sizes.attention.dropout = 0.4;
  const Network network = transformer(sizes);
  NetworkTrial trial = trial_of(network, 2, 7);
  CpuNetwork trained(network, {.batch = 2});
  const Gradients before = trial.of(trained);
  EXPECT_EQ(trial.of(trained).loss, before.loss);
  EXPECT_NE(trial.of(trained, 1, 2).loss, before.loss) << "another seed draws other masks";
  const double square = norm(before.weights) * norm(before.weights);
  const double step = 1e-3 / square;
  for (std::size_t i = 0; i < trial.weights().size(); ++i)
    trial.weights()[i] -= static_cast<float>(step * before.weights[i]);
  EXPECT_NEAR(before.loss - trial.of(trained).loss, 1e-3, 5e-5);
}

TEST(NetworkSequences, EvaluateWithoutDropoutAndOnFewerSequences) {
  Sizes sizes{.elements = 6, .features = 16};
  const Network plain = transformer(sizes);
  sizes.attention.fused = false;
  sizes.attention.dropout = 0.4;
  const Network dropped = transformer(sizes);
  const NetworkTrial trial = trial_of(plain, 2, 7);
  CpuNetwork a(plain, {.batch = 2});
  CpuNetwork b(dropped, {.batch = 2});
  a.set_weights(trial.weights());
  b.set_weights(trial.weights());
  const std::span<const float> one(trial.images().data(), 6);
  const std::span<const std::int32_t> labels(trial.labels().data(), 6);
  EXPECT_EQ(a.forward(one, labels, Pass::evaluation).loss,
            b.forward(one, labels, Pass::evaluation).loss);
}

TEST(NetworkSequences, RefuseTokensThatTheTableLacks) {
  const Network network = transformer({});
  const NetworkTrial trial = trial_of(network, 2, 7);
  CpuNetwork trained(network, {.batch = 2});
  trained.set_weights(trial.weights());
  for (const float token : {-1.0F, 11.0F, std::nanf("")}) {
    std::vector<float> tokens = trial.images();
    tokens[3] = token;
    EXPECT_THROW(static_cast<void>(trained.forward(tokens, trial.labels(), Pass::training)),
                 InputError);
  }
}

TEST(NetworkSequences, RefuseWhatIsNotTrained) {
  const auto refused = [](const Attention& attention) {
    return test::error_of([&] { check_trainable(transformer({.attention = attention})); });
  };
  EXPECT_EQ(refused({.heads = 2}), "no error");
  EXPECT_NE(refused({.heads = 2, .causal = true, .fused = true, .sliding_window = 2})
                .find("'attn' has a sliding window"),
            std::string::npos);
  EXPECT_NE(refused({.heads = 2, .alibi = true}).find("'attn' adds distances to its scores"),
            std::string::npos);
  EXPECT_NE(test::error_of([] {
              check_trainable(transformer({.norm = {.bias = true, .rms = true}}));
            }).find("'ln1' is a root mean square norm with a bias"),
            std::string::npos);
  NetworkBuilder scaled("scaled", Shape::image(3, 4, 4));
  scaled.add("conv", models::Convolution{.channels = 4, .kernel = models::square(1)}, {"input"});
  scaled.add("squeeze", models::AdaptiveAveragePool{models::square(1)});
  scaled.add("mul", models::Multiply{}, {"conv", "squeeze"});
  scaled.add("fc", models::FullyConnected{5});
  scaled.add("loss", models::SoftmaxCrossEntropy{});
  EXPECT_NE(test::error_of([&] {
              check_trainable(scaled.build());
            }).find("'mul' multiplies each channel by one number"),
            std::string::npos);
  EXPECT_NE(test::error_of([&] { check_trainable_on_gpus(transformer({})); }).find("on CPUs only"),
            std::string::npos);
}

}  // namespace
}  // namespace paceline::runtime
