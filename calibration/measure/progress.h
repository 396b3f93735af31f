// How a measurement says how far it is.
#pragma once

#include <functional>
#include <string>

namespace paceline::calibration {

// Called on rank 0 with what is measured next, and the share of its kind that is done, 0 to 1.
using Progress = std::function<void(const std::string& what, double share)>;

}  // namespace paceline::calibration
