// Tests: tests/cli/train_test.py (end to end).
#include "runtime/training/backend.h"

#include "runtime/collective/executor.h"
#include "runtime/device/cpu_device.h"
#include "runtime/network/cpu_network.h"
#include "runtime/network/cpu_precision.h"

namespace paceline::runtime {
namespace {

class CpuBackend final : public Backend {
 public:
  [[nodiscard]] Device& device() override { return cpu_device(); }
  [[nodiscard]] std::string description() const override { return "cpu"; }
  [[nodiscard]] std::unique_ptr<TrainableNetwork> make_network(
      const models::Network& network, const TrainableNetworkOptions& options) override {
    auto made = std::make_unique<CpuNetwork>(network, options);
    note_ = slower_than_fp32(options.storage, made->arithmetic(), has_bf16_instructions());
    return made;
  }
  [[nodiscard]] std::vector<std::string> notes() const override {
    return note_.empty() ? std::vector<std::string>() : std::vector{note_};
  }
  [[nodiscard]] std::unique_ptr<CollectiveExecutor> make_executor(
      const Endpoint& endpoint, const DeviceShare& /*share*/) override {
    return std::make_unique<Executor>(endpoint.transport);
  }

 private:
  std::string note_;  // of the network that was made last
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() {
  return std::make_unique<CpuBackend>();
}

TrainingOutcome train(const TrainingRequest& request, Channel& channel, Backend& backend,
                      CollectiveExecutor& executor, TrainingObserver* observer) {
  return train(request,
               {.channel = channel,
                .executor = executor,
                .device = backend.device(),
                .make_network =
                    [&](const models::Network& network, const TrainableNetworkOptions& options) {
                      return backend.make_network(network, options);
                    },
                .prepare =
                    [&](const models::Network& network, const TrainableNetworkOptions& options) {
                      backend.prepare(network, options);
                    }},
               observer);
}

}  // namespace paceline::runtime
