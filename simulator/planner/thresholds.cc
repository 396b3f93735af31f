// Tests: tests/simulator/planner_test.cc.
#include "simulator/planner/thresholds.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/base/error.h"
#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "simulator/planner/merged_gradients.h"
#include "simulator/planner/threshold_ways.h"

namespace paceline::simulator {
namespace {

Bytes largest_gradient(const models::NetworkWork& network, models::WireType wire) {
  std::int64_t largest = 0;
  for (const models::Gradient& gradient : network.gradients)
    largest = std::max(largest, gradient.elements);
  return static_cast<double>(largest) * models::element_size(wire);
}

int chosen_segments(std::string_view algorithm, Bytes size, int ranks, BucketTimer timer) {
  int best = 1;
  Seconds least = timer.time(models::scheduled(algorithm, {.ranks = ranks, .segments = 1}), size);
  for (int segments = 2; segments <= 256; segments *= 2) {
    const Seconds time =
        timer.time(models::scheduled(algorithm, {.ranks = ranks, .segments = segments}), size);
    if (time >= least) break;  // the time is convex in the number of segments
    least = time;
    best = segments;
  }
  return best;
}

// The bytes up to which NCCL 2.4 takes its trees (src/init.cc, ncclTreeThreshold), from its own rates
// and latencies: microseconds and bytes a microsecond. A channel over NVLink carries 11 GB/s
// (losses.h).
Bytes nccl_tree_threshold(int ranks, const CommunicationCost& cost) {
  const int in_node = std::min(ranks, cost.ranks_per_node);
  const int nodes = (ranks - 1) / cost.ranks_per_node + 1;
  if (nodes == 1) return Bytes{0};
  constexpr double channel_bytes_per_s = 11e9;
  const double channels =
      cost.by_nvlink ? std::max(1.0, std::floor(1 / cost.intra.beta.value() / channel_bytes_per_s))
                     : 1;
  const double ring = 5000 * channels;
  const double tree = ring * (cost.by_nvlink ? (nodes == 2 ? 1.5 : 0.75) : 2.0 / 3);
  const double ring_latency = 6 * (ranks - 1);
  const double tree_latency = 15 * std::floor(std::log2(nodes)) + 4 * (in_node - 1);
  if (ring_latency <= tree_latency) return Bytes{0};
  constexpr double any_size = 1e300;
  if (tree > ring) return Bytes{any_size};
  return Bytes{ring * tree / (ring - tree) * (ring_latency - tree_latency)};
}

// The system's own defaults, or those of the version that was named; single values that were named
// take their place.
void take_system(const models::Strategy& strategy, const ThresholdRequest& asked,
                 models::WireType wire, models::Thresholds& chosen) {
  const models::OtherSystem& system = *strategy.other;
  chosen.dispatch = system.dispatch;
  chosen.fusion = system.fusion;
  chosen.streams = 1;
  if (asked.horovod && system.system == models::System::horovod) {
    chosen.dispatch.cycle = asked.horovod->cycle;
    chosen.dispatch.negotiation = asked.horovod->negotiation;
    chosen.fusion = asked.horovod->fusion;
  }
  if (asked.fusion && system.partition == Bytes{0}) chosen.fusion = *asked.fusion;
  if (asked.cycle && system.dispatch.cycle > Seconds{0}) chosen.dispatch.cycle = *asked.cycle;
  if (asked.unnegotiated) chosen.dispatch.negotiation = models::Negotiation::none;
  // BytePS counts bytes, the others parameters.
  const double of_fp32 =
      system.system == models::System::byteps
          ? 1
          : models::element_size(wire) / models::element_size(models::WireType::fp32);
  if (system.partition > Bytes{0})
    chosen.partition = asked.partition.value_or(of_fp32 * system.partition);
  if (system.dispatch.credit)
    chosen.dispatch.credit = asked.credit.value_or(of_fp32 * *system.dispatch.credit);
  if (asked.through_host && strategy.takes_host_copies()) chosen.dispatch.through_host = true;
}

// Inductor's theta, from the times of two all-reduces between which its model is a line.
Bytes inductor_bucket(const models::Strategy& strategy, int ranks, BucketTimer timer) {
  constexpr Bytes few{1024.0 * 1024};
  constexpr Bytes more{1024.0 * 1024 * 1024};
  const models::PlannedSchedule all_reduce = models::called(*strategy.library(), ranks);
  if (ranks == 1) return saturating_bucket(few, Seconds{0}, more, Seconds{0});
  return saturating_bucket(few, timer.time(all_reduce, few), more, timer.time(all_reduce, more));
}

// One server on each machine of workers, unless the user says otherwise.
void take_servers(const models::OtherSystem& system, const ThresholdRequest& asked, int nodes,
                  models::Thresholds& chosen) {
  chosen.own_machines = asked.server_machines.has_value();
  chosen.servers = asked.server_machines.value_or(asked.servers.value_or(nodes));
  if (!chosen.own_machines && chosen.servers > nodes)
    throw InputError({"--servers"},
                     fmt::format("{} servers on {} machines of workers", chosen.servers, nodes),
                     fmt::format("choose 1 to {}, or --server-machines", nodes));
  chosen.transport = asked.transport.value_or(system.transport);
}

// Groups are nodes, and buckets those of Megatron-LM: max(4e7, 1e6 n) parameters over n ranks
// (distributed_data_parallel.py). A unit of FSDP has a block.
void take_shards(const models::Sharded& sharded, const ThresholdRequest& asked,
                 const PlanningJob& job, const CommunicationCost& cost,
                 models::Thresholds& chosen) {
  if (sharded.in_groups)
    chosen.group_size = asked.group_size.value_or(
        job.ranks % cost.ranks_per_node == 0 ? cost.ranks_per_node : job.ranks);
  chosen.reshard = asked.reshard.value_or(true);
  const Bytes megatron = std::max(4e7, 1e6 * job.ranks) * models::element_size(job.wire);
  chosen.fusion = asked.fusion.value_or(sharded.gathers() ? Bytes{0} : megatron);
}

}  // namespace

int default_group(const models::Strategy& strategy, int ranks, int ranks_per_node) {
  const std::vector<std::string_view> algorithms = strategy.algorithms();
  if (!algorithms.empty() && algorithms.front() == "hierarchical")
    return models::default_group_size(ranks);
  if (ranks_per_node > 1 && ranks_per_node < ranks && ranks % ranks_per_node == 0)
    return ranks_per_node;
  return strategy.takes_rings() ? 1 : models::default_row_length(ranks);
}

ChosenThresholds resolve_thresholds(const models::Strategy& strategy, const ThresholdRequest& asked,
                                    const PlanningJob& job, const PlanningTimers& timers) {
  const CommunicationCost& cost = timers.search.cost();
  ChosenThresholds result;
  models::Thresholds& chosen = result.thresholds;
  if (strategy.takes_group())
    chosen.group_size =
        asked.group_size.value_or(default_group(strategy, job.ranks, cost.ranks_per_node));
  chosen.rings = asked.rings.value_or(0);
  chosen.placement = asked.placement.value_or(models::ServerPlacement::balanced);
  if (strategy.sharded() != nullptr) {
    take_shards(*strategy.sharded(), asked, job, cost, chosen);
    return result;
  }
  const models::WayTraits& way = strategy.traits();
  if (way.takes_factors) chosen.factors_every = asked.factors_every.value_or(1);
  if (way.in_one_bucket) return result;
  if (strategy.takes_streams()) chosen.streams = asked.streams.value_or(1);
  const int nodes = (job.ranks - 1) / cost.ranks_per_node + 1;
  if (way.takes_servers) chosen.servers = asked.servers.value_or(nodes);
  if (strategy.other) {
    const models::Hybrid* hybrid = strategy.hybrid();
    if (hybrid != nullptr)
      chosen.hybrid = asked.hybrid                   ? *asked.hybrid
                      : hybrid->threshold > Bytes{0} ? hybrid->threshold
                                                     : nccl_tree_threshold(job.ranks, cost);
    if (strategy.takes_segments()) {
      const Bytes largest = largest_gradient(job.network, job.wire);
      const Bytes size = hybrid != nullptr ? std::min(chosen.hybrid, largest) : largest;
      chosen.segments = asked.segments ? *asked.segments
                                       : chosen_segments(strategy.algorithms().front(), size,
                                                         job.ranks, timers.search);
    }
    take_system(strategy, asked, job.wire, chosen);
    if (way.takes_machines) take_servers(*strategy.other, asked, nodes, chosen);
    if (strategy.other->system == models::System::ddp && !asked.fusion)
      models::take_buckets_of_ddp(*strategy.other, job.wire, job.network.parameters(), chosen);
    if (strategy.other->system == models::System::inductor && !asked.fusion)
      chosen.fusion = inductor_bucket(strategy, job.ranks,
                                      timers.search.launched_in(Seconds{job.aside.fixed_s}));
    return result;
  }
  chosen.dispatch.through_host = asked.through_host && strategy.takes_host_copies();
  if (way.all_at_once) {
    chosen.fusion = asked.fusion.value_or(Bytes{0});
    return result;
  }
  choose_way(strategy, asked, job, timers, result);
  return result;
}

}  // namespace paceline::simulator
