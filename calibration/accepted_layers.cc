// Tests: tests/calibration/cluster_profile_test.cc, tests/cuda/calibration.
#include "calibration/accepted_layers.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace paceline::calibration {

void SumOfPasses::add(const Figure<Seconds>& pass) {
  value += pass.value;
  low += pass.low;
  high += pass.high;
}

SumOfPasses sum_of(const std::vector<models::CalibratedLayer>& layers) {
  SumOfPasses sum;
  for (const models::CalibratedLayer& layer : layers) {
    sum.add(layer.forward);
    sum.add(layer.backward);
  }
  return sum;
}

std::vector<models::CalibratedLayer> accepted_layers(std::vector<models::CalibratedLayer> layers,
                                                     const std::string& network,
                                                     std::size_t samples, Acceptance& accepted) {
  const auto is_known = [&](const std::string& what, const SumOfPasses& sum) {
    return accepted(what, objection(samples, sum.low.value(), sum.high.value(),
                                    fmt::format("{} to {}", to_text(sum.low), to_text(sum.high))));
  };
  const std::string what = fmt::format("time of the layers of {}", network);
  const SumOfPasses alone = sum_of(layers);
  if (!is_known(what, alone)) return {};

  SumOfPasses beside;
  bool has_beside = false;
  for (const models::CalibratedLayer& layer : layers) {
    if (!layer.forward_beside_traffic || !layer.backward_beside_traffic) continue;
    has_beside = true;
    beside.add(*layer.forward_beside_traffic);
    beside.add(*layer.backward_beside_traffic);
  }
  if (!has_beside) return layers;
  const std::string beside_traffic = what + " beside traffic";
  const bool is_possible =
      beside.high >= alone.low ||
      accepted(beside_traffic, fmt::format("is faster than alone ({} at most against {} at least)",
                                           to_text(beside.high), to_text(alone.low)));
  if (is_possible && is_known(beside_traffic, beside)) return layers;
  for (models::CalibratedLayer& layer : layers)
    layer.forward_beside_traffic = layer.backward_beside_traffic = std::nullopt;
  return layers;
}

}  // namespace paceline::calibration
