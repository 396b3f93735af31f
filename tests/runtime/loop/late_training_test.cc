// Training on a device whose kernels complete late ends with the bits of training on the CPU:
// weights, gradients and the optimizer's state are in memory that the host cannot touch, and every
// kernel waits for what it must wait for.
#include <gmock/gmock.h>

#include <cstring>

#include "models/network/network.h"
#include "models/plan/strategy.h"
#include "runtime/collective/executor.h"
#include "runtime/training/trainer.h"
#include "tests/support/late_network.h"
#include "tests/support/rank_threads.h"
#include "tests/support/temporary_folder.h"

namespace paceline::runtime {
namespace {

using models::NumberType;
using test::LateDevice;
using test::Lateness;

models::Network little_network() {
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
  OptimizerRecipe optimizer = {};
  NumberType wire = NumberType::fp32;
  models::Overlap overlap = models::Overlap::wait_free;
  double loss_scale = 1;
};

class Job {
 public:
  explicit Job(const Setting& setting)
      : network_(little_network()),
        data_(open_dataset({.source = "synthetic",
                            .sample = network_.input(),
                            .classes = 4,
                            .synthetic_samples = 64})),
        plan_(models::make_plan(models::strategy("fused-ring"), models::work(network_).gradients,
                                ranks, setting.wire, {.fusion = Bytes{600}})) {
    plan_.overlap = setting.overlap;
    recipe_.name = "test";
    recipe_.epochs = 2;
    recipe_.batch_per_rank = 8;
    recipe_.learning_rate.base = 0.05;
    recipe_.learning_rate.base_batch = 16;
    recipe_.learning_rate.decay = DecayKind::constant;
    recipe_.optimizer = setting.optimizer;
    recipe_.loss_scale.dynamic = false;
    recipe_.loss_scale.initial = setting.loss_scale;
  }

  // What rank 0 ends with.
  using Parts = std::function<TrainingOutcome(const TrainingRequest&, const Endpoint&)>;
  [[nodiscard]] TrainingOutcome run(const Parts& train_rank, const std::string& checkpoint = {},
                                    const std::string& resume = {},
                                    std::int64_t most_iterations = 0) const {
    TrainingOutcome outcome;
    testing::on_endpoints(ranks, 1, [&](const Endpoint& endpoint) {
      TrainingOutcome own = train_rank({.network = network_,
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
  static constexpr int ranks = 2;
  models::Network network_;
  std::unique_ptr<Dataset> data_;
  models::Plan plan_;
  Recipe recipe_;
};

TrainingOutcome on_cpu(const TrainingRequest& request, const Endpoint& endpoint) {
  return train(request, endpoint);
}

Job::Parts on_late_device(Lateness lateness, std::uint64_t seed) {
  return [=](const TrainingRequest& request, const Endpoint& endpoint) {
    LateDevice device(lateness, seed * 10 + static_cast<std::uint64_t>(endpoint.channel.rank()));
    TrainingOutcome outcome;
    {
      test::LateTransport transport(endpoint.transport, device);
      Executor executor(transport, device);
      const TrainingParts parts{.channel = endpoint.channel,
                                .executor = executor,
                                .device = device,
                                .make_network = [&](const models::Network& network,
                                                    const TrainableNetworkOptions& options) {
                                  return std::make_unique<test::LateNetwork>(device, network,
                                                                             options);
                                }};
      outcome = train(request, parts);
    }
    EXPECT_THAT(device.hazards(), ::testing::IsEmpty());
    EXPECT_GT(device.kernels(), 0);
    return outcome;
  };
}

void expect_same(const TrainingOutcome& a, const TrainingOutcome& b) {
  ASSERT_EQ(a.weights.size(), b.weights.size());
  EXPECT_EQ(std::memcmp(a.weights.data(), b.weights.data(), 4 * a.weights.size()), 0);
  EXPECT_EQ(a.statistics, b.statistics);
  ASSERT_EQ(a.epochs.size(), b.epochs.size());
  for (std::size_t i = 0; i < a.epochs.size(); ++i) {
    EXPECT_EQ(a.epochs[i].test_loss, b.epochs[i].test_loss);
    EXPECT_EQ(a.epochs[i].skipped, b.epochs[i].skipped);
  }
}

class LateTraining : public ::testing::TestWithParam<Setting> {};

TEST_P(LateTraining, EndsWithTheBitsOfTheCpu) {
  const Job job(GetParam());
  const TrainingOutcome expected = job.run(on_cpu);
  expect_same(job.run(on_late_device(Lateness::eager, 1)), expected);
  expect_same(job.run(on_late_device(Lateness::latest, 2)), expected);
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    expect_same(job.run(on_late_device(Lateness::random, seed)), expected);
}

// Interrupted in the middle of the first epoch, on one device and resumed on the other.
TEST_P(LateTraining, ResumesToTheBit) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/checkpoint";
  const Job job(GetParam());
  const TrainingOutcome expected = job.run(on_cpu);
  const Job::Parts late = on_late_device(Lateness::latest, 7);
  for (const auto& [before, after] : {std::pair(late, Job::Parts(on_cpu)),
                                      std::pair(Job::Parts(on_cpu), late), std::pair(late, late)}) {
    (void)job.run(before, path, {}, 3);
    const TrainingOutcome resumed = job.run(after, path, path);
    EXPECT_EQ(
        std::memcmp(resumed.weights.data(), expected.weights.data(), 4 * expected.weights.size()),
        0);
    EXPECT_EQ(resumed.statistics, expected.statistics);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, LateTraining,
    ::testing::Values(Setting{.name = "momentum"},
                      Setting{.name = "lars",
                              .optimizer = {.momentum_correction = true, .lars = {.enabled = true}},
                              .wire = NumberType::fp16,
                              .loss_scale = 128},
                      Setting{.name = "rmsprop",
                              .optimizer = {.kind = OptimizerKind::rmsprop_warm_up},
                              .wire = NumberType::bf16,
                              .overlap = models::Overlap::none},
                      Setting{.name = "double_buffered",
                              .wire = NumberType::fp16,
                              .overlap = models::Overlap::double_buffered,
                              .loss_scale = 128},
                      // Every gradient overflows on the wire, and no update is made.
                      Setting{.name = "overflow", .wire = NumberType::fp16, .loss_scale = 1e30}),
    [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace paceline::runtime
