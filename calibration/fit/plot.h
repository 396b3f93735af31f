// Draws measurements and the fit to them for people: time by size on logarithmic axes, as SVG.
#pragma once

#include <span>
#include <string>

#include "calibration/fit/piecewise.h"

namespace paceline::calibration {

struct PlotText {
  std::string title;
  std::string samples = "measured";  // what the legend calls the data
  std::string origin = {};           // a line in small letters below the title
};

// Every sample is a point (outliers are open), and the fit is a line with its 90 % band. There is a
// dashed line with its size at each breakpoint, axes with ticks and units, a legend, and the
// complaints in red below. Sizes of 0 bytes have no place on a logarithmic axis, and are left out.
// The same arguments give the same text. O(samples + pieces). `fit` must be a fit to `samples`.
[[nodiscard]] std::string fit_svg(std::span<const Sample> samples, const Fit& fit,
                                  const PlotText& text);

}  // namespace paceline::calibration
