// The layers of a network, as far as a profile may call them calibrated.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibration/fit/acceptance.h"
#include "models/profile/profile.h"

namespace paceline::calibration {

// The sum of passes, end by end.
struct SumOfPasses {
  Seconds value;
  Seconds low;
  Seconds high;

  void add(const Figure<Seconds>& pass);
};

// Forward and backward of all layers, alone.
[[nodiscard]] SumOfPasses sum_of(const std::vector<models::CalibratedLayer>& layers);

// The layers without their times beside traffic where those say less than nothing, and none at all
// where their sum may not be called calibrated. Each layer is the figure of `samples` samples.
// `network` is named to the user, as in "time of the layers of resnet50".
[[nodiscard]] std::vector<models::CalibratedLayer> accepted_layers(
    std::vector<models::CalibratedLayer> layers, const std::string& network, std::size_t samples,
    Acceptance& accepted);

}  // namespace paceline::calibration
