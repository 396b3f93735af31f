// Training on a CUDA device, layers included, against training on the CPU.
#include <cuda_runtime_api.h>

#include "tests/cuda/network/training_rig.h"
#include "tests/support/thoroughness.h"

namespace paceline::test {
namespace {

class CudaNetworkTraining : public ::testing::TestWithParam<Setting> {};

TEST_P(CudaNetworkTraining, StaysByTheCpu) {
  expect_by_the_cpu(GetParam(), on_cuda, cases(2, 20));
}

TEST_P(CudaNetworkTraining, ResumesToTheBit) {
  expect_to_resume_to_the_bit(GetParam(), on_cuda);
}

INSTANTIATE_TEST_SUITE_P(Settings, CudaNetworkTraining, ::testing::ValuesIn(settings),
                         [](const auto& p) { return p.param.name; });

// resnet-small, all kinds of its layers, in FP32 and mixed precision.
const ResnetTrial resnet_trials[] = {{NumberType::fp32, 1e-3}, {NumberType::fp16, 5e-2}};

TEST(CudaNetworkTraining, OfResnetSmallStaysByTheCpu) {
  for (const ResnetTrial& trial : resnet_trials)
    expect_resnet_by_the_cpu(models::zoo_network("resnet-small"), trial, on_cuda, cases(1, 20));
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
TEST(CudaNetworkTraining, OfResnetSmallsLayersStaysByTheCpuInEveryOrder) {
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
  in_every_order(cases(2, 8), [&](std::uint64_t seed) {
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
    EXPECT_EQ(run_error_of(work), "no error");
    const long calls = cuda_on_host::calls(function);
    // All of a short list; of a long one some sixty.
    for (long number = 1; number <= calls; number += 1 + calls / 60) {
      cuda_on_host::reset(cuda_on_host::Order::eager, 1);
      cuda_on_host::fail(function, static_cast<int>(number), cudaErrorUnknown);
      const std::string error = run_error_of(work);
      EXPECT_THAT(cuda_on_host::leaks(), ::testing::IsEmpty()) << function << " " << number;
      if (error == "no error") continue;  // a destructor's own failure is nobody's
      ++failures;
      EXPECT_THAT(error, ::testing::MatchesRegex("cannot [^\n]*")) << function << " " << number;
    }
  }
  EXPECT_GT(failures, 60);
}

}  // namespace
}  // namespace paceline::test
