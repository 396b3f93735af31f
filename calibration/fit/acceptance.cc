// Tests: tests/calibration/cluster_profile_test.cc.
#include "calibration/fit/acceptance.h"

#include <fmt/core.h>

#include <algorithm>

#include "calibration/fit/statistics.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

std::string too_wide(const std::string& interval) {
  return fmt::format("is known only from {}, an interval wider than a factor of {:g}", interval,
                     widest_interval);
}

}  // namespace

std::optional<std::string> objection(std::size_t samples, double low, double high,
                                     const std::string& text) {
  if (samples < to_size(least_samples))
    return fmt::format("has {} sample{}, where {} are the least", samples, samples == 1 ? "" : "s",
                       least_samples);
  if (!(high <= widest_interval * low)) return too_wide(text);
  return std::nullopt;
}

std::optional<std::string> objection_to_both_ways(std::size_t samples,
                                                  const Figure<double>& ratio) {
  constexpr double full_duplex = 1;
  constexpr double half_duplex = 2;
  if (ratio.value < full_duplex * (1 - ratio_noise) ||
      ratio.value > half_duplex * (1 + ratio_noise)) {
    return fmt::format(
        "is {:.2f} times as long as one way, which no link does: 1 is full duplex, 2 half",
        ratio.value);
  }
  return objection(samples, ratio.low, ratio.high,
                   fmt::format("{:.2f} to {:.2f} times one way", ratio.low, ratio.high));
}

std::optional<std::string> objection(const Fit& fit) {
  if (fit.sizes.size() < to_size(few_sizes))
    return fmt::format("has {} size{}, where {} are the least", fit.sizes.size(),
                       fit.sizes.size() == 1 ? "" : "s", few_sizes);
  const double misfit = normal_reach * std::max(fit.residual_within, models::least_misfit);
  for (const FittedSize& size : fit.sizes) {
    const Seconds low = size.low * std::max(0.0, 1 - misfit);
    const Seconds high = size.high * (1 + misfit);
    if (!(high <= widest_interval * low))
      return too_wide(fmt::format("{} to {} at {} (residual {:.0f} %)", to_text(low), to_text(high),
                                  to_text_binary(size.bytes), 100 * fit.residual_within));
  }
  return std::nullopt;
}

std::string left_out(const std::string& what, const std::string& objection) {
  return fmt::format("{} is left out of the profile: it {}; give more --time, or a quieter machine",
                     what, objection);
}

bool Acceptance::operator()(const std::string& what, const std::optional<std::string>& objection) {
  if (objection) complaints_.push_back(left_out(what, *objection));
  return !objection;
}

bool Acceptance::operator()(const std::string& what, const Fit& fit) {
  if (!(*this)(what, objection(fit))) return false;
  for (const std::string& complaint : fit.complaints)
    complaints_.push_back(fmt::format("{}: {}", what, complaint));
  return true;
}

}  // namespace paceline::calibration
