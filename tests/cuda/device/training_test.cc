// Training whose weights, gradients and optimizer are on a CUDA device ends with the bits of training
// on the CPU, however late its kernels run. The CPU's network computes (tests/support/late_network.h).
#include "models/network/zoo.h"
#include "runtime/collective/executor.h"
#include "tests/cuda/device/rig.h"
#include "tests/support/late_network.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training_job.h"

namespace paceline::test {
namespace {

runtime::TrainingOutcome on_cuda(const runtime::TrainingRequest& request,
                                 const runtime::Endpoint& endpoint) {
  CudaDevice device;
  runtime::Executor executor(endpoint.transport, device);
  return runtime::train(request,
                        {.channel = endpoint.channel,
                         .executor = executor,
                         .device = device,
                         .make_network = [&](const models::Network& network,
                                             const runtime::TrainableNetworkOptions& options) {
                           return std::make_unique<LateNetwork>(device, network, options);
                         }});
}

class CudaTraining : public ::testing::TestWithParam<Setting> {};

TEST_P(CudaTraining, EndsWithTheBitsOfTheCpu) {
  const Job job(GetParam());
  const runtime::TrainingOutcome expected = job.run(on_cpu);
  in_every_order(20, [&](std::uint64_t) { expect_same(job.run(on_cuda), expected); });
}

// Interrupted in the middle of the first epoch, on one device and resumed on the other.
TEST_P(CudaTraining, ResumesToTheBit) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/checkpoint";
  const Job job(GetParam());
  const runtime::TrainingOutcome expected = job.run(on_cpu);
  in_every_order(1, [&](std::uint64_t) {
    for (const auto& [before, after] : {std::pair(Job::Parts(on_cuda), Job::Parts(on_cpu)),
                                        std::pair(Job::Parts(on_cpu), Job::Parts(on_cuda)),
                                        std::pair(Job::Parts(on_cuda), Job::Parts(on_cuda))}) {
      (void)job.run(before, path, {}, 3);
      const runtime::TrainingOutcome resumed = job.run(after, path, path);
      EXPECT_EQ(resumed.weights, expected.weights);
      EXPECT_EQ(resumed.statistics, expected.statistics);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Settings, CudaTraining, ::testing::ValuesIn(settings),
                         [](const auto& p) { return p.param.name; });

// A network of the catalogue, with tensors of all sizes, for a few iterations.
TEST(CudaTraining, OfResnetSmallEndsWithTheBitsOfTheCpu) {
  const Job job(settings[1], models::zoo_network("resnet-small"), 10);
  const runtime::TrainingOutcome expected = job.run(on_cpu, {}, {}, 2);
  in_every_order(2, [&](std::uint64_t) { expect_same(job.run(on_cuda, {}, {}, 2), expected); });
}

}  // namespace
}  // namespace paceline::test
