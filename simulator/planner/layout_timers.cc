// Tests: tests/simulator/layout_test.cc.
#include "simulator/planner/layout_timers.h"

#include <algorithm>

#include "models/base/to_size.h"
#include "simulator/cost/communication_cost.h"

namespace paceline::simulator {
namespace {

using models::Collective;
using models::Exchange;
using models::LayerWork;

class Timing {
 public:
  Timing(const LayoutJob& job, const std::vector<LayerTime>& layers)
      : job_(job), layers_(layers), timers_(job.groups) {}

  LayoutTimes all() {
    LayoutTimes times{.layout = job_.layout,
                      .stages = job_.stages,
                      .batches = job_.batches,
                      .exchanges = {},
                      .sends = {},
                      .passes = {}};
    for (std::size_t i = 0; i < job_.work.exchanges.size(); ++i) {
      ExchangeTimes& of = times.exchanges.emplace_back();
      for (const Exchange& exchange : job_.work.exchanges[i]) add(exchange, of);
      // A pass that is computed anew exchanges anew.
      if (job_.recompute == models::Recompute::full &&
          !models::block_of(job_.work.network.layers[i].name).empty())
        of.backward.insert(of.backward.end(), of.forward.begin(), of.forward.end());
    }
    for (const std::int64_t sent : job_.stages.sent)
      times.sends.push_back(sent == 0 ? Seconds{0} : send(sent));
    return times;
  }

 private:
  [[nodiscard]] Bytes bytes(std::int64_t elements) const {
    return job_.batch_per_rank * static_cast<double>(elements) *
           models::element_size(job_.precision);
  }

  Seconds time(const Exchange& exchange, Collective collective) {
    const Bytes whole = bytes(exchange.elements);
    const Seconds once =
        exchange.axis == Exchange::Axis::tensor
            ? timers_.in_shards(job_.layout.tensor, collective, whole)
            : timers_.in_strided(job_.layout.tensor, job_.layout.context, collective, whole);
    return exchange.times * (job_.launch + once);
  }

  void add(const Exchange& exchange, ExchangeTimes& times) {
    const bool is_context = exchange.axis == Exchange::Axis::context;
    // The part of a reader's pass that hides a transfer.
    Seconds forward;
    Seconds weights;
    Seconds activations;
    for (const int reader : exchange.readers) {
      const LayerTime& layer = layers_[to_size(reader)];
      const LayerWork& work = job_.work.network.layers[to_size(reader)];
      const auto all = static_cast<double>(std::max<std::int64_t>(1, work.backward_flops()));
      forward += layer.forward;
      weights += static_cast<double>(work.weight_gradient_flops) / all * layer.backward;
      activations += static_cast<double>(work.data_gradient_flops) / all * layer.backward;
    }
    const double hidden = 1 - 1.0 / job_.layout.context;
    if (exchange.forward)
      times.forward.push_back(
          {time(exchange, *exchange.forward), is_context ? hidden * forward : Seconds{0}});
    if (exchange.backward)
      times.backward.push_back(
          {time(exchange, *exchange.backward), is_context ? hidden / 2 * activations : weights});
    if (exchange.again)
      times.backward.push_back({time(exchange, Collective::all_gather),
                                is_context ? hidden / 2 * activations : activations});
  }

  // Each rank of a stage sends its part to the rank at its place in the next stage.
  [[nodiscard]] Seconds send(std::int64_t elements) const {
    const models::Cluster& cluster = job_.groups.cluster;
    const CommunicationCost cost =
        communication_cost(cluster, job_.groups.profile, job_.groups.bound, job_.groups.ranks);
    const Bytes own = bytes(elements) / (job_.layout.tensor * job_.layout.context);
    const int apart = job_.groups.ranks / job_.layout.pipeline;
    const int g = cluster.ranks_per_node;
    if (job_.groups.ranks <= g || apart < g)
      return job_.launch + cost.intra.alpha + own * cost.intra.beta;
    const double nics = static_cast<double>(cost.nics_per_node) / g;
    return job_.launch + cost.nic_alpha(own) + own * cost.nic.beta / std::min(1.0, nics);
  }

  const LayoutJob& job_;
  const std::vector<LayerTime>& layers_;
  GroupTimers timers_;
};

}  // namespace

RankGroup data_group(const models::Cluster& cluster, const models::Layout& layout, int ranks) {
  return replica_group(cluster, layout.tensor, ranks / layout.pipeline);
}

LayoutTimes layout_times(const LayoutJob& job, const std::vector<LayerTime>& layers) {
  return Timing(job, layers).all();
}

}  // namespace paceline::simulator
