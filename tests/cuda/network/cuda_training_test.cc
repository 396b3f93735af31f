// Training on a CUDA device, layers included, against training on the CPU.
#include <cuda_runtime_api.h>

#include "models/network/zoo.h"
#include "runtime/collective/executor.h"
#include "runtime/network/cuda/cuda_network.h"
#include "tests/cuda/device/rig.h"
#include "tests/cuda/network/training_rig.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training_job.h"

namespace paceline::test {
namespace {

using runtime::TrainableNetworkOptions;

runtime::TrainingOutcome on_cuda(const runtime::TrainingRequest& request,
                                 const runtime::Endpoint& endpoint) {
  CudaDevice device;
  runtime::Executor executor(endpoint.transport, device);
  return runtime::train(
      request,
      {.channel = endpoint.channel,
       .executor = executor,
       .device = device,
       .make_network = [&](const models::Network& network, const TrainableNetworkOptions& options) {
         return std::make_unique<runtime::CudaNetwork>(device, network, options);
       }});
}

class CudaNetworkTraining : public ::testing::TestWithParam<Setting> {};

// The order and width of sums differ, by a few units of FP32's roundoff in each pass. On a 16-bit
// wire that changes the rounding of few gradients, by a unit each.
TEST_P(CudaNetworkTraining, StaysByTheCpu) {
  const Job job(GetParam());
  const runtime::TrainingOutcome expected = job.run(on_cpu);
  const NumberType wire = GetParam().wire;
  const double bound = wire == NumberType::fp32 ? 1e-4 : wire == NumberType::fp16 ? 1e-2 : 5e-2;
  std::vector<float> first;
  in_every_order(20, [&](std::uint64_t) {
    const runtime::TrainingOutcome made = job.run(on_cuda);
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
    // The same bits, whatever the order.
    if (first.empty()) first = made.weights;
    EXPECT_EQ(made.weights, first);
  });
}

TEST_P(CudaNetworkTraining, ResumesToTheBit) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/checkpoint";
  const Job job(GetParam());
  in_every_order(1, [&](std::uint64_t) {
    const runtime::TrainingOutcome expected = job.run(on_cuda);
    (void)job.run(on_cuda, path, {}, 3);
    const runtime::TrainingOutcome resumed = job.run(on_cuda, path, path);
    EXPECT_EQ(resumed.weights, expected.weights);
    EXPECT_EQ(resumed.statistics, expected.statistics);
  });
}

INSTANTIATE_TEST_SUITE_P(Settings, CudaNetworkTraining, ::testing::ValuesIn(settings),
                         [](const auto& p) { return p.param.name; });

// resnet-small, all kinds of its layers, in FP32 and mixed precision.
TEST(CudaNetworkTraining, OfResnetSmallStaysByTheCpu) {
  for (const NumberType storage : {NumberType::fp32, NumberType::fp16}) {
    SCOPED_TRACE(std::string(name(storage)));
    Job job(settings[0], models::zoo_network("resnet-small"), 10);
    job.recipe().batch_per_rank = 1;
    if (storage != NumberType::fp32) {
      job.recipe().precision = models::Precision::mixed;
      job.recipe().storage = storage;
      job.recipe().loss_scale.initial = 128;
    }
    const runtime::TrainingOutcome expected = job.run(on_cpu, {}, {}, 2);
    const double bound = storage == NumberType::fp32 ? 1e-3 : 5e-2;
    in_every_order(2, [&](std::uint64_t) {
      const runtime::TrainingOutcome made = job.run(on_cuda, {}, {}, 2);
      EXPECT_LT(distance(made.weights, expected.weights, start_of(job)), bound);
    });
  }
}

// The same layers, which read smaller images.
models::Network on_images_of(const models::Network& network, const models::Shape& image) {
  models::NetworkBuilder net(network.name(), image);
  for (const models::Layer& layer : network.layers()) {
    std::vector<std::string> inputs;
    for (const int input : layer.inputs)
      inputs.push_back(input == models::network_input
                           ? "input"
                           : network.layers()[static_cast<std::size_t>(input)].name);
    net.add(layer.name, layer.kind, inputs);
  }
  return net.build();
}

// Three iterations are started kernel by kernel, captured, and replayed. All orders have the same bits.
TEST(CudaNetworkTraining, OfResnetSmallsLayersStaysByTheCpuUnderTwentySeeds) {
  const models::Network network =
      on_images_of(models::zoo_network("resnet-small"), models::Shape::image(1, 8, 8));
  struct Trial {
    Job job;
    double bound;
    runtime::TrainingOutcome expected;
    std::vector<float> first;
  };
  std::vector<Trial> trials;
  for (const bool is_mixed : {false, true}) {
    Job job(settings[is_mixed ? 1 : 0], network, 10);
    job.recipe().batch_per_rank = 2;  // a norm of one number has no gradient but roundoff
    if (is_mixed) {
      job.recipe().precision = models::Precision::mixed;
      job.recipe().storage = NumberType::fp16;
    }
    trials.push_back({std::move(job), is_mixed ? 1e-1 : 1e-3, {}, {}});
    trials.back().expected = trials.back().job.run(on_cpu, {}, {}, 3);
  }
  // FP32 and mixed precision under seeds in turn, so that it takes half as long.
  in_every_order(20, [&](std::uint64_t seed) {
    Trial& trial = trials[seed % 2];
    const runtime::TrainingOutcome made = trial.job.run(on_cuda, {}, {}, 3);
    EXPECT_LT(distance(made.weights, trial.expected.weights, start_of(trial.job)), trial.bound);
    if (trial.first.empty()) trial.first = made.weights;
    EXPECT_EQ(made.weights, trial.first);
  });
}

// Whatever fails at whichever call: one line on each rank, and nothing is left or hangs.
TEST(CudaNetworkTraining, EndsInOneLineWhereverItFails) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "only the double fails on demand";
  const Job job(settings[0]);
  const auto work = [&] { return job.run(on_cuda, {}, {}, 1).weights.size(); };
  int failures = 0;
  for (const char* function : {"cudaMalloc", "cudaHostAlloc", "cudaStreamCreateWithFlags",
                               "cudaEventRecord", "cudaMemcpyAsync", "cudaLaunchKernelExC"}) {
    cuda_on_host::reset(cuda_on_host::Order::eager, 1);
    EXPECT_EQ(run_error_of(work), "");
    const long calls = cuda_on_host::calls(function);
    // All of a short list; of a long one some sixty.
    for (long number = 1; number <= calls; number += 1 + calls / 60) {
      cuda_on_host::reset(cuda_on_host::Order::eager, 1);
      cuda_on_host::fail(function, static_cast<int>(number), cudaErrorUnknown);
      const std::string error = run_error_of(work);
      EXPECT_THAT(cuda_on_host::leaks(), ::testing::IsEmpty()) << function << " " << number;
      if (error.empty()) continue;  // a destructor's own failure is nobody's
      ++failures;
      EXPECT_THAT(error, ::testing::MatchesRegex("cannot [^\n]*")) << function << " " << number;
    }
  }
  EXPECT_GT(failures, 60);
}

}  // namespace
}  // namespace paceline::test
