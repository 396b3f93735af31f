// Tests: tests/simulator/sharded_test.cc.
#include "simulator/cost/shard_cost.h"

#include <algorithm>
#include <span>
#include <utility>

#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

// Whether each of several batches has communication of its own.
bool sends_in_each_batch(const models::Sharding& sharding) {
  return sharding.before_pass() || sharding.sums_in_each_pass();
}

}  // namespace

bool holds_root(const models::Bucket& bucket, const models::NetworkWork& network) {
  const auto gradients =
      std::span(network.gradients)
          .subspan(to_size(bucket.first_gradient), to_size(bucket.gradient_count));
  return std::ranges::any_of(gradients, [](const models::Gradient& gradient) {
    return models::block_of(gradient.name).empty();
  });
}

ShardTraffic shard_traffic(const models::ShardUse& use, int batches) {
  const models::Sharding& sharding = models::sharding(use.kind);
  const int in_a_batch = use.reshard ? 2 : 1;  // before the forward, and the backward pass
  return {.gathers = sharding.before_pass()    ? in_a_batch * batches
                     : sharding.after_update() ? 1
                                               : 0,
          .reductions = sharding.sums_in_each_pass() ? batches : 1};
}

double split_parameters(const models::NetworkWork& network, const models::ShardUse& use,
                        int parts) {
  double all = 0;
  double of_experts = 0;
  for (const models::LayerWork& layer : network.layers) {
    const auto parameters = static_cast<double>(layer.parameter_elements());
    all += parameters;
    if (layer.expert_ranks > 1) of_experts += parameters;
  }
  return (all - of_experts) / use.shards + of_experts / use.shards_of_parts(parts);
}

ComputeTimes sharded_compute(ComputeTimes compute, const models::ShardUse& use,
                             double share_of_update) {
  const models::Sharding& sharding = models::sharding(use.kind);
  if (sharding.states == models::TensorPlacement::split) compute.update *= share_of_update;
  if (compute.earlier.count == 0 || !sends_in_each_batch(sharding)) return compute;
  // The first forward pass holds all passes of earlier batches, however much slower ranks made them.
  const std::vector<LayerTime>& layers = compute.earlier.layers;
  Seconds batch;
  for (const LayerTime& layer : layers) batch += layer.forward + layer.backward;
  const Seconds own = layers.front().forward;
  const Seconds whole = compute.earlier.count * batch + own;
  if (whole > Seconds{0})
    for (auto* times : {&compute.layers, &compute.beside_traffic})
      if (!times->empty()) times->front().forward *= own / whole;
  compute.repeated = compute.earlier.count;
  compute.earlier = {};
  return compute;
}

}  // namespace paceline::simulator
