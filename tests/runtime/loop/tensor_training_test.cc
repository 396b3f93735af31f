// Training with tensor parallelism beside training of whole networks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/layout/tensor_part.h"
#include "models/network/decoder.h"
#include "models/plan/strategy.h"
#include "runtime/exchange/recorder.h"
#include "runtime/training/trainer.h"
#include "tests/support/error_of.h"
#include "tests/support/rank_threads.h"
#include "tests/support/temporary_folder.h"

namespace paceline::runtime {
namespace {

using models::NumberType;
using test::error_of;
using test::TemporaryFolder;
using testing::on_endpoints;

// A little GPT-2: it has dropouts, biases, and queries, keys and values side by side.
models::Network of_gpt() {
  models::NetworkBuilder net("gpt", models::Shape::sequence(6));
  using Of = models::Embedding::Of;
  net.add("wte", models::Embedding{Of::tokens, 12, 8}, {"input"});
  net.add("wpe", models::Embedding{Of::positions, 6, 8}, {"input"});
  net.add("embedded", models::Add{}, {"wte", "wpe"});
  std::string last = net.add("dropout", models::Dropout{0.1});
  for (const std::string block : {"h0", "h1"}) {
    net.add(block + ".ln1", models::LayerNorm{}, {last});
    net.add(block + ".qkv", models::Linear{24});
    net.add(block + ".attn", models::Attention{.heads = 4, .causal = true, .dropout = 0.1});
    net.add(block + ".proj", models::Linear{8});
    const std::string dropped = net.add(block + ".dropout", models::Dropout{0.1});
    last = net.add(block + ".add1", models::Add{}, {dropped, last});
    net.add(block + ".ln2", models::LayerNorm{});
    net.add(block + ".fc", models::Linear{32});
    net.add(block + ".gelu", models::Gelu{});
    const std::string made = net.add(block + ".out", models::Linear{8});
    last = net.add(block + ".add2", models::Add{}, {made, last});
  }
  const std::string normalised = net.add("ln_f", models::LayerNorm{});
  net.add("logits", models::TiedLinear{}, {normalised, "wte"});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

// A little Llama: it has gates, rotary positions, and a head of its own.
models::Network of_llama() {
  return models::decoder({.name = "llama",
                          .blocks = 2,
                          .features = 12,
                          .heads = 6,
                          .key_value_heads = 6,
                          .head_features = 2,
                          .inner = 18,
                          .vocabulary = 12,
                          .sequence = 5,
                          .rotary_base = 100,
                          .has_gate = true,
                          .rms_norm = true});
}

Recipe recipe_of(OptimizerKind kind, double clip_norm) {
  Recipe recipe;
  recipe.name = "test";
  recipe.epochs = 1;
  recipe.batch_per_rank = 4;
  recipe.learning_rate.base = kind == OptimizerKind::momentum_sgd ? 0.5 : 0.01;
  recipe.learning_rate.base_batch = 8;
  recipe.learning_rate.decay = DecayKind::constant;
  recipe.optimizer.kind = kind;
  recipe.optimizer.clip_norm = clip_norm;
  return recipe;
}

struct Setting {
  models::Network network = of_gpt();
  Recipe recipe = recipe_of(OptimizerKind::adamw, 0);
  int replicas = 1;
  int tensor = 1;
  std::string strategy = "fused-ring";
  models::Overlap overlap = models::Overlap::wait_free;
  std::string checkpoint = {};
  std::string resume = {};
  std::int64_t most_iterations = 0;
  Recorder* recorder = nullptr;
};

// The outcome of rank 0, of 32 samples.
TrainingOutcome trained(const Setting& setting) {
  const auto data = open_dataset({.source = "synthetic",
                                  .sample = setting.network.input(),
                                  .classes = 12,
                                  .synthetic_samples = 32});
  const models::Network part =
      setting.tensor == 1 ? setting.network
                          : models::tensor_part(setting.network, setting.tensor, 0).network;
  models::Plan plan =
      models::make_plan(models::strategy(setting.strategy), models::work(part).gradients,
                        setting.replicas, NumberType::fp32, {.fusion = Bytes{600}});
  plan.overlap = setting.overlap;
  if (setting.tensor > 1) plan.layout = {.tensor = setting.tensor, .sequence_parallel = false};
  TrainingOutcome outcome;
  on_endpoints(plan.all_ranks(), plan.all_streams(), [&](const Endpoint& endpoint) {
    TrainingOutcome own =
        train({.network = setting.network,
               .dataset = *data,
               .plan = plan,
               .recipe = setting.recipe,
               .checkpoint = setting.checkpoint,
               .resume = setting.resume,
               .most_iterations = setting.most_iterations,
               .recorder = endpoint.channel.rank() == 0 ? setting.recorder : nullptr},
              endpoint);
    if (endpoint.channel.rank() == 0) outcome = std::move(own);
  });
  return outcome;
}

// The largest difference of the weights, over the largest weight.
double difference(const TrainingOutcome& a, const TrainingOutcome& b) {
  EXPECT_EQ(a.weights.size(), b.weights.size());
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < std::min(a.weights.size(), b.weights.size()); ++i) {
    const double of_a = a.weights[i];
    largest = std::max(largest, std::abs(of_a));
    difference = std::max(difference, std::abs(of_a - static_cast<double>(b.weights[i])));
  }
  return difference / largest;
}

void expect_same(const TrainingOutcome& parts, const TrainingOutcome& whole, double tolerance) {
  EXPECT_LT(difference(parts, whole), tolerance);
  ASSERT_EQ(parts.epochs.size(), whole.epochs.size());
  for (std::size_t i = 0; i < whole.epochs.size(); ++i) {
    EXPECT_NEAR(parts.epochs[i].training_loss, whole.epochs[i].training_loss, 1e-4);
    EXPECT_NEAR(parts.epochs[i].test_loss, whole.epochs[i].test_loss, 1e-4);
  }
}

// The sums of a layer are in another order, so that the bits differ. Adam divides by roots of gradients, which makes
// small differences large.
constexpr double tolerance = 2e-4;

TEST(TensorTraining, IsThatOfTheWholeNetwork) {
  for (const auto& [tensor, replicas] : {std::pair{2, 1}, {4, 1}, {2, 2}})
    for (const OptimizerKind kind : {OptimizerKind::momentum_sgd, OptimizerKind::adamw}) {
      const double clip_norm = kind == OptimizerKind::adamw ? 0.05 : 0.0;
      SCOPED_TRACE(fmt::format("{} x {}, clipped to {}", tensor, replicas, clip_norm));
      Setting whole;
      whole.recipe = recipe_of(kind, clip_norm);
      whole.replicas = replicas;
      Setting parts = whole;
      parts.tensor = tensor;
      expect_same(trained(parts), trained(whole), tolerance);
    }
}

TEST(TensorTraining, TakesThreeRanksAndGates) {
  for (const int tensor : {2, 3, 6}) {
    SCOPED_TRACE(tensor);
    Setting whole;
    whole.network = of_llama();
    Setting parts = whole;
    parts.tensor = tensor;
    const bool divides = 12 % tensor == 0;
    ASSERT_TRUE(divides);
    expect_same(trained(parts), trained(whole), tolerance);
  }
}

TEST(TensorTraining, GoesWithShardsAndOverlaps) {
  Setting whole;
  whole.replicas = 2;
  for (const auto overlap :
       {models::Overlap::wait_free, models::Overlap::none, models::Overlap::double_buffered}) {
    whole.overlap = overlap;
    const TrainingOutcome expected = trained(whole);
    std::vector<std::string> strategies = {"fused-ring"};
    if (overlap != models::Overlap::double_buffered) strategies.push_back("zero1");
    if (overlap == models::Overlap::wait_free)
      strategies.insert(strategies.end(), {"torus-2d", "zero2", "fsdp"});
    for (const std::string& strategy : strategies) {
      SCOPED_TRACE(fmt::format("{}, {}", strategy, models::name(overlap)));
      Setting parts = whole;
      parts.tensor = 2;
      parts.strategy = strategy;
      expect_same(trained(parts), expected, tolerance);
    }
  }
}

// Sixteen bits round what ranks add, so that it is near, and not the same.
TEST(TensorTraining, TakesSixteenBits) {
  for (const NumberType storage : {NumberType::bf16, NumberType::fp16}) {
    SCOPED_TRACE(models::name(storage));
    Setting whole;
    whole.recipe.precision = models::Precision::mixed;
    whole.recipe.storage = storage;
    Setting parts = whole;
    parts.tensor = 2;
    const TrainingOutcome made = trained(parts);
    const TrainingOutcome expected = trained(whole);
    EXPECT_NEAR(made.epochs.back().training_loss, expected.epochs.back().training_loss, 0.02);
    EXPECT_LT(difference(made, expected), 0.1);
  }
}

TEST(TensorTraining, ResumesAtAnotherLayout) {
  const TemporaryFolder folder;
  struct Layout {
    int replicas;
    int tensor;
    const char* strategy;
  };
  const std::vector<Layout> layouts = {
      {2, 1, "fused-ring"}, {2, 2, "fused-ring"}, {2, 2, "zero1"}, {2, 4, "fsdp"}};
  Setting whole;
  whole.replicas = 2;
  whole.recipe.optimizer.clip_norm = 1;
  const TrainingOutcome expected = trained(whole);
  const auto at = [&](const Layout& layout) {
    Setting setting = whole;
    setting.replicas = layout.replicas;
    setting.tensor = layout.tensor;
    setting.strategy = layout.strategy;
    return setting;
  };
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    Setting first = at(layouts[i]);
    first.checkpoint = folder / fmt::format("{}.checkpoint", i);
    first.most_iterations = 2;
    trained(first);
    for (const std::size_t next : {(i + 1) % layouts.size(), (i + 2) % layouts.size()}) {
      const Layout& layout = layouts[next];
      SCOPED_TRACE(
          fmt::format("{} to {} x {} {}", i, layout.replicas, layout.tensor, layout.strategy));
      Setting second = at(layout);
      second.resume = first.checkpoint;
      expect_same(trained(second), expected, tolerance);
    }
  }
}

TEST(TensorTraining, RecordsItsExchanges) {
  Recorder recorder(1, 3);
  Setting parts;
  parts.tensor = 2;
  parts.recorder = &recorder;
  trained(parts);
  int exchanges = 0;
  int passes = 0;
  for (const models::TimelineEvent& event : recorder.timeline("test", 0).events) {
    exchanges += event.kind == models::TaskKind::exchange ? 1 : 0;
    passes += event.kind == models::TaskKind::forward ? 1 : 0;
    EXPECT_GE(event.duration, Seconds{0});
  }
  // The embedding, two layers of each block in each direction, what the head reads, and the loss.
  EXPECT_EQ(exchanges, 3 * (1 + 2 * 2 * 2 + 1 + 1));
  EXPECT_EQ(passes, 3 * static_cast<int>(parts.network.layers().size()));
}

TEST(TensorTraining, SaysWhatItDoesNotTake) {
  Setting delayed;
  delayed.replicas = 2;
  delayed.strategy = "zero1";
  delayed.overlap = models::Overlap::double_buffered;
  EXPECT_EQ(error_of([&] { trained(delayed); }),
            "--overlap: zero1 has no overlap double-buffered; choose wait-free or none");
  Setting parts;
  parts.tensor = 2;
  parts.recipe.optimizer = {.lars = {.enabled = true}};
  EXPECT_EQ(error_of([&] { trained(parts); }),
            "LARS takes the norms of whole parameters, which ranks share out; choose a recipe "
            "without LARS");
}

}  // namespace
}  // namespace paceline::runtime
