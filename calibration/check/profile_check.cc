// Tests: tests/calibration/check_test.cc.
#include "calibration/check/profile_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/base/interval.h"
#include "models/base/parse_units.h"

namespace paceline::calibration {
namespace {

using models::CalibratedCurve;

constexpr std::array sizes = {Bytes{1 << 10}, Bytes{1 << 16}, Bytes{1 << 20}, Bytes{1 << 24}};

const CalibratedCurve* same_curve(const models::Profile* profile, const CalibratedCurve& curve) {
  if (profile == nullptr) return nullptr;
  const auto same = std::ranges::find_if(profile->curves, [&](const CalibratedCurve& other) {
    return other.kind == curve.kind && other.between_nodes == curve.between_nodes &&
           other.library == curve.library && other.wire == curve.wire &&
           (other.ranks == curve.ranks || !is_of_library(curve.kind));
  });
  return same == profile->curves.end() ? nullptr : &*same;
}

std::optional<Figure<Seconds>> expected_time(const Expectation& expectation,
                                             const CalibratedCurve& curve, Bytes size) {
  if (const CalibratedCurve* const same = same_curve(expectation.profile, curve)) {
    const Seconds time = same->time(size);
    const double factor = std::exp(normal_reach * same->misfit());
    return Figure<Seconds>{time, time / factor, factor * time, Provenance::predicted, same->source};
  }
  if (is_of_library(curve.kind)) return std::nullopt;
  const models::Link& link =
      curve.between_nodes ? expectation.cluster.nic : expectation.cluster.intra;
  if (link.name.empty()) return std::nullopt;
  return Figure<Seconds>{link.latency.value + size / link.bandwidth.value,
                         link.latency.low + size / link.bandwidth.high,
                         link.latency.high + size / link.bandwidth.low, Provenance::predicted,
                         link.name};
}

}  // namespace

std::vector<CheckedPart> checked_curves(const Expectation& expectation,
                                        const MeasuredProfile& measured) {
  std::vector<CheckedPart> parts;
  for (const CalibratedCurve& curve : measured.profile.curves) {
    for (const Bytes size : sizes) {
      if (curve.measured && (size < curve.measured->least || size > curve.measured->most)) continue;
      const auto expected = expected_time(expectation, curve, size);
      if (!expected) continue;
      const Seconds time = curve.time(size);
      parts.push_back(
          {fmt::format("{}{} of {} {}", curve.library.empty() ? "" : curve.library + " ",
                       name(curve.kind), to_text_binary(size),
                       curve.between_nodes ? "between nodes" : "in a node"),
           measured.file, *expected, time, time, time,
           verdict(time, expected->low, expected->high)});
    }
  }
  return parts;
}

models::Profile with_links_of(models::Profile profile, const models::Profile& other) {
  profile.intra_latency = other.intra_latency;
  profile.intra_bandwidth = other.intra_bandwidth;
  profile.nic_latency = other.nic_latency;
  profile.nic_bandwidth = other.nic_bandwidth;
  profile.intra_both_ways = other.intra_both_ways;
  profile.nic_both_ways = other.nic_both_ways;
  profile.uplink_oversubscription = other.uplink_oversubscription;
  profile.curves = other.curves;
  return profile;
}

}  // namespace paceline::calibration
