// Tests: tests/simulator/fusion_test.cc.
#include "simulator/planner/stream_clock.h"

#include <cmath>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "simulator/planner/recurrence.h"

namespace paceline::simulator {

StreamClock stream_clock(const models::NetworkWork& network, const ComputeTimes& compute,
                         models::Overlap overlap, bool slows) {
  StreamClock clock;
  clock.update_s = compute.update.value();
  clock.computed_s = (compute.total() - compute.update).value();
  const bool waits =
      overlap == models::Overlap::none || overlap == models::Overlap::double_buffered;
  for (const Seconds time : gradient_times(network, compute))
    clock.ready_s.push_back(waits ? clock.computed_s : time.value());
  std::vector<double> forward_s = {0};  // of each layer
  for (const LayerTime& layer : compute.layers)
    forward_s.push_back(forward_s.back() + layer.forward.value());
  for (const models::Gradient& gradient : network.gradients)
    clock.forward_s.push_back(forward_s[to_size(gradient.layer)]);
  if (!slows || compute.beside_traffic.empty()) return clock;
  PACELINE_ASSERT(compute.beside_traffic.size() == compute.layers.size(),
                  "every layer has its time beside traffic");
  double alone = 0;
  double beside = 0;
  for (std::size_t i = 0; i < compute.layers.size(); ++i) {
    alone += compute.layers[i].backward.value();
    beside += compute.beside_traffic[i].backward.value();
  }
  if (beside <= 0) return clock;
  const double speed = alone / beside;
  clock.slowing = std::max(0.0, 1 - speed);
  clock.load = compute.load;
  constexpr double alike = 1e-12;
  for (std::size_t i = 0; i < compute.layers.size(); ++i) {
    const double other = compute.beside_traffic[i].backward.value() * speed;
    if (std::abs(other - compute.layers[i].backward.value()) > alike * (other + alone))
      clock.is_even = false;
  }
  if (speed > 1 + alike) clock.is_even = false;
  return clock;
}

}  // namespace paceline::simulator
