// A profile that was calibrated on the cluster that is checked, beside what is expected of it.
#pragma once

#include <vector>

#include "calibration/check/checked.h"
#include "calibration/check/evidence.h"

namespace paceline::calibration {

// Messages and a library's collectives at a few of the sizes that were measured, beside the curves of the
// expectation's profile, and messages else beside the cluster's links. Curves with nothing beside them are
// left out.
[[nodiscard]] std::vector<CheckedPart> checked_curves(const Expectation& expectation,
                                                      const MeasuredProfile& measured);

// The profile with what another says of how links pass messages: nothing, where that says nothing.
[[nodiscard]] models::Profile with_links_of(models::Profile profile, const models::Profile& other);

}  // namespace paceline::calibration
