// Forward and backward time of each layer of a network on this rank's processor, by the runtime's
// own kernels, with data that was drawn.
#pragma once

#include <string>
#include <vector>

#include "models/network/network.h"
#include "models/plan/profile.h"

namespace paceline::calibration {

struct LayerTimesRequest {
  const models::Network& network;
  int batch = 1;
  models::Precision precision = models::Precision::fp32;  // mixed: BF16 storage and arithmetic
  int threads = 1;
  int iterations = 5;  // at least 1, after one that warms caches
};

// Median of the iterations, and the quartiles as interval; measured. A layer that another does on
// the way (a ReLU in a convolution) takes no time. Throws as runtime::TrainableNetwork does.
[[nodiscard]] std::vector<models::CalibratedLayer> measure_layers(const LayerTimesRequest& request,
                                                                  const std::string& source);

}  // namespace paceline::calibration
