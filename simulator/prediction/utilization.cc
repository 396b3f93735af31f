// Tests: tests/simulator/sharded_test.cc.
#include "simulator/prediction/utilization.h"

#include "simulator/cost/compute_time.h"

namespace paceline::simulator {

std::optional<Utilization> utilization(const PredictionRequest& request, PerSecond throughput) {
  const models::NetworkWork& network = request.network;
  if (network.sequence == 0) return std::nullopt;
  constexpr double passes = 3;  // forward, and a backward pass of twice as much
  double model = 0;
  double full_square = 0;
  double computed = 0;
  const models::Recomputation recomputation(network, request.recompute);
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const models::LayerWork& layer = network.layers[i];
    const auto forward = static_cast<double>(layer.forward_flops);
    model += passes * forward;
    full_square +=
        passes * (layer.square_flops > 0 ? static_cast<double>(layer.square_flops) : forward);
    computed +=
        (1 + recomputation.again(i)) * forward + static_cast<double>(layer.backward_flops());
  }
  const PerSecond of_rank = throughput / request.ranks;
  const FlopsPerSecond peak = peak_rate(request.cluster.device, request.precision, Bound::stated);
  const auto share = [&](double flops) { return flops * of_rank.value() / peak.value(); };
  const auto tokens = static_cast<double>(network.sequence);
  return Utilization{tokens * throughput, tokens * of_rank, share(model), share(full_square),
                     share(computed)};
}

}  // namespace paceline::simulator
