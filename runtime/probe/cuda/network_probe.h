// A network on a CUDA device, timed layer by layer. Private to runtime/probe/cuda.
#pragma once

#include <memory>

#include "runtime/probe/device_probe.h"
#include "runtime/training/backend.h"

namespace paceline::runtime::cuda {

struct NetworkProbeOptions {
  int batch = 1;
  models::Precision precision = models::Precision::fp32;
  int devices = 1;  // between which the traffic travels
};

// The backend, of a CUDA device, outlives it.
[[nodiscard]] std::unique_ptr<NetworkProbe> make_network_probe(Backend& backend,
                                                               const models::Network& network,
                                                               const NetworkProbeOptions& options);

}  // namespace paceline::runtime::cuda
