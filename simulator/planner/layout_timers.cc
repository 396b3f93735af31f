// Tests: tests/simulator/layout_test.cc.
#include "simulator/planner/layout_timers.h"

#include <algorithm>
#include <cmath>

#include "models/base/to_size.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/cost/expert_load.h"

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
    const models::Recomputation recomputation(job_.work.network, job_.recompute);
    for (std::size_t i = 0; i < job_.work.exchanges.size(); ++i) {
      ExchangeTimes& of = times.exchanges.emplace_back();
      for (const Exchange& exchange : job_.work.exchanges[i]) add(i, exchange, of);
      if (recomputation.exchanges_again(i))
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
    const double sent = exchange.axis == Exchange::Axis::expert ? sent_share(exchange.copies) : 1;
    return exchange.times * (job_.launch + once(exchange.axis, collective, sent * whole));
  }

  // The share of a token's copies that travels. With k experts of it drawn evenly from those of n places, n (1 - (1 -
  // 1/n)^k) places have some of them; the places are nodes, or the ranks of one.
  [[nodiscard]] double sent_share(int copies) const {
    if (!job_.layout.tokens_once) return 1;
    const int ranks = job_.layout.expert_ranks();
    const int of_node = std::min(ranks, job_.groups.cluster.ranks_per_node);
    const double places = ranks > of_node ? (ranks + of_node - 1) / of_node : ranks;
    return places * (1 - std::pow(1 - 1 / places, copies)) / copies;
  }

  Seconds once(Exchange::Axis axis, Collective collective, Bytes bytes) {
    switch (axis) {
      case Exchange::Axis::tensor:
        return timers_.in_shards(job_.layout.tensor, collective, bytes);
      case Exchange::Axis::context:
        return timers_.in_strided(job_.layout.tensor, job_.layout.context, collective, bytes);
      case Exchange::Axis::expert:
        return timers_.in_shards(job_.layout.expert_ranks(), collective,
                                 expert_load(job_.groups.bound) * bytes);
    }
    return {};
  }

  // This share of a tensor-parallel exchange stays exposed where it travels in parts beside a product: the first
  // part of a gather, the last of a reduce-scatter, and what parts lose of a link's rate.
  [[nodiscard]] double exposed_share() const {
    constexpr double fast = 0.15;
    constexpr double stated = 0.3;
    constexpr double slow = 0.6;
    const Bound bound = job_.groups.bound;
    return bound == Bound::fast ? fast : bound == Bound::slow ? slow : stated;
  }

  // The time for which products hide a transfer that travels in parts.
  [[nodiscard]] Seconds in_parts(const Exchange& exchange, Seconds time, Seconds products) const {
    if (exchange.axis != Exchange::Axis::tensor || !job_.layout.tensor_overlap) return Seconds{0};
    return std::min((1 - exposed_share()) * time, products);
  }

  void add(std::size_t writer, const Exchange& exchange, ExchangeTimes& times) {
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
    const LayerTime& written = layers_[writer];
    if (exchange.forward) {
      const Seconds travels = time(exchange, *exchange.forward);
      // A gather is beside the products that read it, and a sum beside the one that makes it.
      const bool is_gather = exchange.forward == Collective::all_gather;
      times.forward.push_back(
          {travels, is_context
                        ? hidden * forward
                        : in_parts(exchange, travels, is_gather ? forward : written.forward)});
    }
    if (exchange.backward) {
      const Seconds travels = time(exchange, *exchange.backward);
      const Seconds products =
          exchange.backward == Collective::all_gather ? written.backward : activations;
      times.backward.push_back(
          {travels, is_context ? hidden / 2 * activations
                               : std::max(weights, in_parts(exchange, travels, products))});
    }
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
