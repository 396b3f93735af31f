// Fits with the measurements that they are of, as JSON, for tools and reports (docs/formats.md).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit/piecewise.h"
#include "models/base/document.h"

namespace paceline::calibration {

// A curve, with the samples that it was fitted to. `origin` says where they come from; it may be empty.
struct FittedSamples {
  std::span<const Sample> samples;
  const Fit& fit;
  std::string title;
  std::string origin;
};

struct Fits {
  std::string name;  // of the profile
  std::string origin;
  std::vector<FittedSamples> curves;
  std::vector<std::string> remarks;  // for people
};
[[nodiscard]] const Document<Fits>& fits_document();

}  // namespace paceline::calibration
