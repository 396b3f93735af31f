// Tests: tests/calibration/one_point_test.cc.
#include "calibration/one_point.h"

#include <fmt/core.h>

#include "models/base/error.h"
#include "models/base/interval.h"

namespace paceline::calibration {
namespace {

double efficiency_at(const simulator::PredictionRequest& request, const models::Strategy& strategy,
                     Seconds latency) {
  models::Profile profile = request.profile != nullptr ? *request.profile : models::Profile{};
  profile.nic_latency = Figure<Seconds>::exact(latency, Provenance::calibrated, "trial");
  simulator::PredictionRequest trial = request;
  trial.profile = &profile;
  return simulator::Predictor(trial).predict(strategy).efficiency;
}

// Searches by halving, for efficiency falls as latency grows.
Seconds latency_for(const simulator::PredictionRequest& request, const models::Strategy& strategy,
                    double efficiency) {
  Seconds low{0};
  Seconds high{10e-3};
  if (efficiency_at(request, strategy, low) < efficiency ||
      efficiency_at(request, strategy, high) > efficiency) {
    throw RunError("calibrate the NIC latency",
                   fmt::format("no latency from 0 to 10 ms gives {} an efficiency of {:.4g}",
                               strategy.name, efficiency));
  }
  constexpr double accuracy = 1e-10;
  while (high - low > accuracy * high) {
    const Seconds middle = 0.5 * (low + high);
    (efficiency_at(request, strategy, middle) >= efficiency ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

Figure<Seconds> calibrate_nic_latency(const simulator::PredictionRequest& request,
                                      const models::Strategy& strategy,
                                      const EfficiencyPoint& point) {
  // The middle 90 % of what rounds to the published figure, all of it being equally likely.
  const double reach = interval_level * point.rounding;
  return {.value = latency_for(request, strategy, point.efficiency),
          .low = latency_for(request, strategy, point.efficiency + reach),
          .high = latency_for(request, strategy, point.efficiency - reach),
          .provenance = Provenance::calibrated,
          .source = point.source};
}

}  // namespace paceline::calibration
