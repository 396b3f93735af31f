// The calibration of a GPU as text for people.
#pragma once

#include <string>

#include "cli/job/device_calibration.h"

namespace paceline::cli {

[[nodiscard]] std::string device_calibration_text(const job::DeviceCalibration& calibration);

}  // namespace paceline::cli
