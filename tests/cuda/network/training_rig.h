// What tests of training on CUDA devices share: two ranks on one device, and what they are held against.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/network/zoo.h"
#include "runtime/collective/executor.h"
#include "runtime/network/cuda/cuda_network.h"
#include "runtime/network/cuda/step_library.h"
#include "tests/cuda/device/rig.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training_job.h"

namespace paceline::test {

// Trains a rank whose layers are computed by what `libraries` makes, or by our own kernels.
inline runtime::TrainingOutcome train_on(CudaDevice& device,
                                         runtime::cuda::StepLibraries* libraries,
                                         runtime::CollectiveExecutor& executor,
                                         const runtime::TrainingRequest& request,
                                         const runtime::Endpoint& endpoint) {
  return runtime::train(
      request, {.channel = endpoint.channel,
                .executor = executor,
                .device = device,
                .make_network = [&](const models::Network& network,
                                    const runtime::TrainableNetworkOptions& options) {
                  return std::make_unique<runtime::CudaNetwork>(
                      device, network, options, libraries == nullptr ? nullptr : libraries->make());
                }});
}

// Its layers are computed by our own kernels.
inline runtime::TrainingOutcome on_cuda(const runtime::TrainingRequest& request,
                                        const runtime::Endpoint& endpoint) {
  CudaDevice device;
  runtime::Executor executor(endpoint.transport, device);
  return train_on(device, nullptr, executor, request, endpoint);
}

// How far the weights of two trainings are apart, over how far training moved them from `start`.
inline double distance(const std::vector<float>& a, const std::vector<float>& b,
                       const std::vector<float>& start) {
  double apart = 0;
  double moved = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    moved += std::pow(static_cast<double>(b[i]) - static_cast<double>(start[i]), 2);
  }
  return std::sqrt(apart / moved);
}

inline std::vector<float> start_of(const Job& job) {
  return runtime::initial_weights(job.network(), job.initial());
}

// The order and width of sums differ, by a few units of FP32's roundoff in each pass. On a 16-bit wire
// that changes the rounding of few gradients, by a unit each. All orders have the same bits.
inline void expect_by_the_cpu(const Setting& setting, const Job::Parts& parts,
                              std::uint64_t seeds) {
  const Job job(setting);
  const runtime::TrainingOutcome expected = job.run(on_cpu);
  const NumberType wire = setting.wire;
  const double bound = wire == NumberType::fp32 ? 1e-4 : wire == NumberType::fp16 ? 1e-2 : 5e-2;
  std::vector<float> first;
  in_every_order(seeds, [&](std::uint64_t) {
    const runtime::TrainingOutcome made = job.run(parts);
    ASSERT_EQ(made.weights.size(), expected.weights.size());
    if (setting.name == "overflow") {
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

inline void expect_to_resume_to_the_bit(const Setting& setting, const Job::Parts& parts) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/checkpoint";
  const Job job(setting);
  in_every_order(1, [&](std::uint64_t) {
    const runtime::TrainingOutcome expected = job.run(parts);
    (void)job.run(parts, path, {}, 3);
    const runtime::TrainingOutcome resumed = job.run(parts, path, path);
    EXPECT_EQ(resumed.weights, expected.weights);
    EXPECT_EQ(resumed.statistics, expected.statistics);
  });
}

// A few iterations of a network with all kinds of layers that resnet-small has, in a storage type, and
// how far it may be from the CPU's. All orders have the same bits.
struct ResnetTrial {
  NumberType storage = NumberType::fp32;
  double bound = 0;
  int batch = 1;
  std::int64_t iterations = 2;
};
inline void expect_resnet_by_the_cpu(const models::Network& network, const ResnetTrial& trial,
                                     const Job::Parts& parts, std::uint64_t seeds) {
  SCOPED_TRACE(std::string(models::name(trial.storage)));
  Job job(settings[0], network, 10);
  job.recipe().batch_per_rank = trial.batch;
  if (trial.storage != NumberType::fp32) {
    job.recipe().precision = models::Precision::mixed;
    job.recipe().storage = trial.storage;
    job.recipe().loss_scale.initial = 128;
  }
  const runtime::TrainingOutcome expected = job.run(on_cpu, {}, {}, trial.iterations);
  std::vector<float> first;
  in_every_order(seeds, [&](std::uint64_t) {
    const runtime::TrainingOutcome made = job.run(parts, {}, {}, trial.iterations);
    EXPECT_LT(distance(made.weights, expected.weights, start_of(job)), trial.bound);
    if (first.empty()) first = made.weights;
    EXPECT_EQ(made.weights, first);
  });
}

}  // namespace paceline::test
