// Training on a CUDA device with its layers by cuDNN, against training on the CPU.
#include "models/network/zoo.h"
#include "runtime/collective/executor.h"
#include "runtime/network/cuda/cuda_network.h"
#include "runtime/network/cuda/step_library.h"
#include "runtime/network/cudnn/cudnn_steps.h"
#include "tests/cuda/device/rig.h"
#include "tests/cuda/network/training_rig.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training_job.h"

namespace paceline::test {
namespace {

using runtime::TrainableNetworkOptions;

// Each rank has cuDNN for itself, and plans of its own.
runtime::TrainingOutcome on_cudnn(const runtime::TrainingRequest& request,
                                  const runtime::Endpoint& endpoint) {
  const TemporaryFolder folder;
  CudaDevice device;
  runtime::Executor executor(endpoint.transport, device);
  const std::unique_ptr<runtime::cuda::StepLibraries> libraries = runtime::cudnn::open_cudnn(
      {.device = 0, .plans = folder.path() + "/plans.json", .tf32 = false});
  return runtime::train(
      request,
      {.channel = endpoint.channel,
       .executor = executor,
       .device = device,
       .make_network = [&](const models::Network& network, const TrainableNetworkOptions& options) {
         return std::make_unique<runtime::CudaNetwork>(device, network, options, libraries->make());
       }});
}

class CudnnTraining : public ::testing::TestWithParam<Setting> {};

// As CudaNetworkTraining.StaysByTheCpu, whose bounds these are.
TEST_P(CudnnTraining, StaysByTheCpu) {
  const Job job(GetParam());
  const runtime::TrainingOutcome expected = job.run(on_cpu);
  const NumberType wire = GetParam().wire;
  const double bound = wire == NumberType::fp32 ? 1e-4 : wire == NumberType::fp16 ? 1e-2 : 5e-2;
  std::vector<float> first;
  in_every_order(4, [&](std::uint64_t) {
    const runtime::TrainingOutcome made = job.run(on_cudnn);
    ASSERT_EQ(made.weights.size(), expected.weights.size());
    if (GetParam().name == "overflow") {
      EXPECT_EQ(made.weights, expected.weights);
    } else {
      EXPECT_LT(distance(made.weights, expected.weights, start_of(job)), bound);
    }
    ASSERT_EQ(made.epochs.size(), expected.epochs.size());
    for (std::size_t i = 0; i < made.epochs.size(); ++i) {
      EXPECT_NEAR(made.epochs[i].test_loss, expected.epochs[i].test_loss, 10 * bound);
      EXPECT_EQ(made.epochs[i].skipped, expected.epochs[i].skipped);
    }
    if (first.empty()) first = made.weights;
    EXPECT_EQ(made.weights, first);
  });
}

TEST_P(CudnnTraining, ResumesToTheBit) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/checkpoint";
  const Job job(GetParam());
  in_every_order(1, [&](std::uint64_t) {
    const runtime::TrainingOutcome expected = job.run(on_cudnn);
    (void)job.run(on_cudnn, path, {}, 3);
    const runtime::TrainingOutcome resumed = job.run(on_cudnn, path, path);
    EXPECT_EQ(resumed.weights, expected.weights);
    EXPECT_EQ(resumed.statistics, expected.statistics);
  });
}

INSTANTIATE_TEST_SUITE_P(Settings, CudnnTraining, ::testing::ValuesIn(settings),
                         [](const auto& p) { return p.param.name; });

TEST(CudnnTraining, OfResnetSmallStaysByTheCpu) {
  for (const NumberType storage : {NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
    SCOPED_TRACE(std::string(name(storage)));
    Job job(settings[0], models::zoo_network("resnet-small"), 10);
    job.recipe().batch_per_rank = 1;
    if (storage != NumberType::fp32) {
      job.recipe().precision = models::Precision::mixed;
      job.recipe().storage = storage;
      job.recipe().loss_scale.initial = 128;
    }
    const runtime::TrainingOutcome expected = job.run(on_cpu, {}, {}, 2);
    // The gradients of weights are rounded to BF16, too.
    const double bound = storage == NumberType::fp32   ? 1e-4
                         : storage == NumberType::fp16 ? 5e-2
                                                       : 1.5e-1;
    in_every_order(1, [&](std::uint64_t) {
      const runtime::TrainingOutcome made = job.run(on_cudnn, {}, {}, 2);
      EXPECT_LT(distance(made.weights, expected.weights, start_of(job)), bound);
    });
  }
}

}  // namespace
}  // namespace paceline::test
