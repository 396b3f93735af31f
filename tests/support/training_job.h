// A short training of a few ranks, for tests that hold one device's end of it against another's.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "models/network/network.h"
#include "models/plan/strategy.h"
#include "runtime/training/trainer.h"
#include "tests/support/rank_threads.h"

namespace paceline::test {

using models::NumberType;

inline models::Network little_network() {
  models::NetworkBuilder net("little", models::Shape::image(1, 8, 8));
  net.add("conv", models::Convolution{
                      .channels = 8, .kernel = models::square(3), .padding = models::square(1)});
  net.add("bn", models::BatchNorm{});
  net.add("relu", models::Relu{});
  net.add("flatten", models::Flatten{});
  net.add("dropout", models::Dropout{0.2});
  net.add("fc", models::FullyConnected{4});
  net.add("loss", models::SoftmaxCrossEntropy{});
  return net.build();
}

struct Setting {
  std::string name;
  runtime::OptimizerRecipe optimizer = {};
  NumberType wire = NumberType::fp32;
  models::Overlap overlap = models::Overlap::wait_free;
  double loss_scale = 1;
  std::string strategy = "fused-ring";
  int ranks = 2;
  int group = 1;  // k, of strategies that take groups
  int streams = 1;
};

// The settings in which every device is tried.
inline const Setting settings[] = {
    {.name = "momentum"},
    {.name = "lars",
     .optimizer = {.momentum_correction = true, .lars = {.enabled = true}},
     .wire = NumberType::fp16,
     .loss_scale = 128},
    {.name = "rmsprop",
     .optimizer = {.kind = runtime::OptimizerKind::rmsprop_warm_up},
     .wire = NumberType::bf16,
     .overlap = models::Overlap::none},
    {.name = "double_buffered",
     .wire = NumberType::fp16,
     .overlap = models::Overlap::double_buffered,
     .loss_scale = 128},
    // Every gradient overflows on the wire, and no update is made.
    {.name = "overflow", .wire = NumberType::fp16, .loss_scale = 1e30}};

class Job {
 public:
  explicit Job(const Setting& setting, const models::Network& network = little_network(),
               int classes = 4)
      : network_(network),
        data_(runtime::open_dataset({.source = "synthetic",
                                     .sample = network_.input(),
                                     .classes = classes,
                                     .synthetic_samples = 64})),
        plan_(models::make_plan(models::strategy(setting.strategy),
                                models::work(network_).gradients, setting.ranks, setting.wire,
                                {.fusion = paceline::Bytes{600},
                                 .group_size = setting.group,
                                 .streams = setting.streams})) {
    plan_.overlap = setting.overlap;
    recipe_.name = "test";
    recipe_.epochs = 2;
    recipe_.batch_per_rank = 8;
    recipe_.learning_rate.base = 0.05;
    recipe_.learning_rate.base_batch = 16;
    recipe_.learning_rate.decay = runtime::DecayKind::constant;
    recipe_.optimizer = setting.optimizer;
    recipe_.loss_scale.dynamic = false;
    recipe_.loss_scale.initial = setting.loss_scale;
  }

  [[nodiscard]] const models::Network& network() const { return network_; }
  [[nodiscard]] runtime::Recipe& recipe() { return recipe_; }
  // How the weights are drawn that training starts from.
  [[nodiscard]] runtime::InitialWeights initial() const {
    return {.seed = recipe_.seed, .zero_last_gamma = recipe_.zero_last_gamma};
  }

  // Trains one rank, and returns its outcome; run() returns that of rank 0.
  using Parts = std::function<runtime::TrainingOutcome(const runtime::TrainingRequest&,
                                                       const runtime::Endpoint&)>;
  [[nodiscard]] runtime::TrainingOutcome run(const Parts& train_rank,
                                             const std::string& checkpoint = {},
                                             const std::string& resume = {},
                                             std::int64_t most_iterations = 0) const {
    runtime::TrainingOutcome outcome;
    paceline::testing::on_endpoints(
        plan_.ranks, plan_.streams, [&](const runtime::Endpoint& endpoint) {
          runtime::TrainingOutcome own = train_rank({.network = network_,
                                                     .dataset = *data_,
                                                     .plan = plan_,
                                                     .recipe = recipe_,
                                                     .checkpoint = checkpoint,
                                                     .resume = resume,
                                                     .most_iterations = most_iterations},
                                                    endpoint);
          if (endpoint.channel.rank() == 0) outcome = std::move(own);
        });
    return outcome;
  }

 private:
  models::Network network_;
  std::unique_ptr<runtime::Dataset> data_;
  models::Plan plan_;
  runtime::Recipe recipe_;
};

inline runtime::TrainingOutcome on_cpu(const runtime::TrainingRequest& request,
                                       const runtime::Endpoint& endpoint) {
  return runtime::train(request, endpoint);
}

// Whether both ended with the same bits.
inline void expect_same(const runtime::TrainingOutcome& a, const runtime::TrainingOutcome& b) {
  ASSERT_EQ(a.weights.size(), b.weights.size());
  EXPECT_EQ(std::memcmp(a.weights.data(), b.weights.data(), 4 * a.weights.size()), 0);
  EXPECT_EQ(a.statistics, b.statistics);
  ASSERT_EQ(a.epochs.size(), b.epochs.size());
  for (std::size_t i = 0; i < a.epochs.size(); ++i) {
    EXPECT_EQ(a.epochs[i].test_loss, b.epochs[i].test_loss);
    EXPECT_EQ(a.epochs[i].skipped, b.epochs[i].skipped);
  }
}

}  // namespace paceline::test
