// Fits with the measurements that they are of, as JSON, for tools and reports (schema paceline.fits/1,
// docs/formats.md).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit/piecewise.h"
#include "models/base/json.h"

namespace paceline::calibration {

// An entry of `curves`. `origin` says where the samples come from; it may be empty.
[[nodiscard]] Json fit_json(std::span<const Sample> samples, const Fit& fit,
                            const std::string& title, const std::string& origin);

// The document. `name` is the profile's; `remarks` are for people.
[[nodiscard]] std::string fits_json(const std::string& name, const std::string& origin,
                                    std::vector<Json> curves,
                                    const std::vector<std::string>& remarks);

}  // namespace paceline::calibration
