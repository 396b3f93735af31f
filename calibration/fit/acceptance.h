// Whether what was measured may be called calibrated.
//
// A figure that is physically impossible, or known so badly that it says less than a datasheet, is
// not written into a profile: predictions then keep the cluster's own figure. Whoever makes a
// profile asks here, and tells the user why a figure is missing and what would help.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/fit/piecewise.h"
#include "models/base/parse_units.h"

namespace paceline::calibration {

// An interval whose high end is more than this many times its low end is useless: the value may
// then be off by a factor of two either way.
inline constexpr double widest_interval = 4;
// By how much a ratio may be outside what physics allows before it is called impossible: the same
// share as the residual above which a fit is called bad.
inline constexpr double ratio_noise = bad_residual;

// Each function returns why the figure may not be called calibrated, as the end of a sentence of
// which the figure is the subject ("has 2 samples, where 3 are the least"), or nothing if it may.

// A figure from this many samples, whose interval is `low` to `high` and whose values must be above
// 0. `text` is the interval in words, as in "3 us to 90 us".
[[nodiscard]] std::optional<std::string> objection(std::size_t samples, double low, double high,
                                                   const std::string& text);

// A message each way at once over one alone: 1 on a full duplex link, 2 on a half duplex one.
[[nodiscard]] std::optional<std::string> objection_to_both_ways(std::size_t samples,
                                                                const Figure<double>& ratio);

// A fit of time by size, at the size whose time it knows worst: both the interval of the fit there
// and what the residual of its sizes adds (90 % of normal errors; outliers left out) count.
[[nodiscard]] std::optional<std::string> objection(const Fit& fit);

// "what is left out of the profile: it <objection>; give more --time, or a quieter machine".
[[nodiscard]] std::string left_out(const std::string& what, const std::string& objection);

// "3 us to 90 us".
template <class Q>
std::string interval_text(const Figure<Q>& figure) {
  return to_text(figure.low) + " to " + to_text(figure.high);
}

// Asks of one figure after another whether it may be called calibrated, and adds to `complaints`,
// which outlives it, what the user is to be told of each that may not.
class Acceptance {
 public:
  explicit Acceptance(std::vector<std::string>& complaints) : complaints_(complaints) {}

  // True if there is no objection to `what`.
  bool operator()(const std::string& what, const std::optional<std::string>& objection);
  template <class Q>
  bool operator()(const std::string& what, std::size_t samples, const Figure<Q>& figure) {
    return (*this)(
        what, objection(samples, figure.low.value(), figure.high.value(), interval_text(figure)));
  }
  // Also tells what the fit itself complains of.
  bool operator()(const std::string& what, const Fit& fit);

 private:
  std::vector<std::string>& complaints_;
};

}  // namespace paceline::calibration
