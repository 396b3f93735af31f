// The profiles in calibration/profiles, which are part of the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/profile/profile.h"

namespace paceline::calibration {

[[nodiscard]] std::vector<std::string> shipped_profile_names();
// Throws InputError that suggests the nearest name.
[[nodiscard]] models::Profile shipped_profile(std::string_view name);

}  // namespace paceline::calibration
