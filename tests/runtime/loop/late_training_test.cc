// Training on a device whose kernels complete late ends with the bits of training on the CPU:
// weights, gradients and the optimizer's state are in memory that the host cannot touch, and every
// kernel waits for what it must wait for.
#include <gmock/gmock.h>

#include <cstring>

#include "runtime/collective/executor.h"
#include "tests/support/late_device.h"
#include "tests/support/late_network.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training_job.h"

namespace paceline::runtime {
namespace {

using test::expect_same;
using test::Job;
using test::LateDevice;
using test::Lateness;
using test::on_cpu;
using test::Setting;

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

INSTANTIATE_TEST_SUITE_P(Settings, LateTraining, ::testing::ValuesIn(test::settings),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace paceline::runtime
