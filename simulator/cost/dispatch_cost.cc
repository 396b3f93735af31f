// Tests: tests/simulator/cycles_test.cc.
#include "simulator/cost/dispatch_cost.h"

#include <algorithm>
#include <cmath>

#include "models/base/to_size.h"
#include "simulator/cost/prior.h"

namespace paceline::simulator {
namespace {

double at(const Prior& prior, Bound bound, bool faster_if_larger) {
  return read_prior(prior, bound, faster_if_larger);
}

constexpr Prior message_of_rank_s{2e-6, 1e-6, 10e-6};
constexpr Prior gradient_of_rank_s{1e-6, 0.3e-6, 3e-6};
constexpr Prior small_all_reduces{1.5, 1, 2};
constexpr Prior byte_scheduler_task_s{0.26e-3, 0.085e-3, 0.8e-3};
constexpr Prior p3_slice_s{50e-6, 20e-6, 100e-6};
constexpr Prior pageable_bytes_per_s{5e9, 3e9, 6.8e9};
constexpr Prior summed_bytes_per_s{3e9, 1.5e9, 7e9};
constexpr Prior messages_beside_threads{3, 1, 10};

// Up a tree over all ranks, and down again.
Seconds tree_latency(int ranks, const CommunicationCost& cost) {
  const double in_node = std::log2(std::min(ranks, cost.ranks_per_node));
  return 2 * (in_node * cost.intra.alpha + (std::log2(ranks) - in_node) * cost.nic.alpha);
}

}  // namespace

Seconds negotiation_time(models::Negotiation negotiation, int ranks, int gradients,
                         const CommunicationCost& cost, Bound bound) {
  if (ranks == 1) return Seconds{0};
  switch (negotiation) {
    case models::Negotiation::none:
      break;
    case models::Negotiation::messages:
      return Seconds{at(message_of_rank_s, bound, false) * ranks};
    case models::Negotiation::gather:
      return 2 * tree_latency(ranks, cost) +
             Seconds{at(gradient_of_rank_s, bound, false) * gradients * ranks};
    case models::Negotiation::bits:
      return at(small_all_reduces, bound, false) * tree_latency(ranks, cost);
  }
  return Seconds{0};
}

Seconds hand_over_time(models::System system, Bound bound) {
  return system == models::System::p3 ? Seconds{at(p3_slice_s, bound, false)} : Seconds{0};
}

ComputeTimes with_tasks(ComputeTimes compute, const models::NetworkWork& network,
                        const models::Plan& plan, Bound bound) {
  const auto& other = models::strategy(plan.strategy).other;
  if (plan.ranks == 1 || !other || other->system != models::System::byte_scheduler) return compute;
  const Seconds task{at(byte_scheduler_task_s, bound, false)};
  for (const models::Bucket& bucket : plan.buckets) {
    const auto gradient = to_size(bucket.first_gradient);
    const auto layer = to_size(network.gradients[gradient].layer);
    compute.layers[layer].forward += task;
    if (!compute.beside_traffic.empty()) compute.beside_traffic[layer].forward += task;
  }
  return compute;
}

HostWay host_way(Bytes bytes, int ranks, Bound bound) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  return {bytes / BytesPerSecond{at(pageable_bytes_per_s, bound, true)},
          others * bytes / BytesPerSecond{at(summed_bytes_per_s, bound, true)},
          at(messages_beside_threads, bound, false)};
}

}  // namespace paceline::simulator
