// What a rank trains with: a device, the networks that compute on it, and what sums its gradients.
// The CPU is the backend of whoever asks for none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "runtime/channel/endpoint.h"
#include "runtime/collective/collective_executor.h"
#include "runtime/device/device.h"
#include "runtime/network/trainable_network.h"
#include "runtime/training/trainer.h"

namespace paceline::runtime {

// How a rank uses its device.
struct DeviceShare {
  int streams = 1;  // of the plan
  Seconds patience = device_patience;
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] virtual Device& device() = 0;
  // For reports: "cpu", "NVIDIA H100 80GB HBM3, sm_90".
  [[nodiscard]] virtual std::string description() const = 0;
  // What the user should know of how networks are computed, a line each. More may come when a network
  // is made.
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }
  // Does ahead what takes long in make_network(), where there is such a thing, and what must not be
  // done while gradients travel.
  virtual void prepare(const models::Network& /*network*/,
                       const TrainableNetworkOptions& /*options*/) {}
  [[nodiscard]] virtual std::unique_ptr<TrainableNetwork> make_network(
      const models::Network& network, const TrainableNetworkOptions& options) = 0;
  // All ranks call it at the same point. The endpoint outlives the executor.
  [[nodiscard]] virtual std::unique_ptr<CollectiveExecutor> make_executor(
      const Endpoint& endpoint, const DeviceShare& share) = 0;
};

[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend();

// Trains with a backend, as train() of trainer.h does. The backend and the executor outlive it.
TrainingOutcome train(const TrainingRequest& request, Channel& channel, Backend& backend,
                      CollectiveExecutor& executor, TrainingObserver* observer = nullptr);

}  // namespace paceline::runtime
