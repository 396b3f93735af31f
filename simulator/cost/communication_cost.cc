// Tests: tests/simulator/cost_test.cc.
#include "simulator/cost/communication_cost.h"

#include <algorithm>

namespace paceline::simulator {
namespace {

LinkCost link_cost(const Figure<Seconds>& latency, const Figure<BytesPerSecond>& bandwidth,
                   Reading reading) {
  return {read_figure(latency, reading, false), 1.0 / read_figure(bandwidth, reading, true)};
}

}  // namespace

BytesPerSecond effective_memory_bandwidth(const models::Device& device, Reading reading) {
  return read_figure(device.memory_bandwidth, reading, true) *
         read_figure(device.memory_efficiency, reading, true);
}

CommunicationCost communication_cost(const models::Cluster& cluster, const models::Profile* profile,
                                     Reading reading) {
  const auto or_catalogue = [](const auto& calibrated, const auto& stated) {
    return calibrated ? *calibrated : stated;
  };
  CommunicationCost cost;
  cost.ranks_per_node = cluster.ranks_per_node;
  cost.nics_per_node = cluster.nics_per_node;
  cost.nic_use = cluster.nic_use;
  cost.intra_kind = cluster.intra_kind;
  cost.fabric = cluster.fabric;
  if (cluster.hop_latency)
    cost.fabric.hop_latency = read_figure(*cluster.hop_latency, reading, false);
  cost.placement = cluster.placement;
  cost.slots = cluster.slots;
  cost.slow_nodes = cluster.slow_nodes;
  cost.platform = cluster.platform;
  cost.nodes = cluster.nodes;
  if (profile == nullptr) {
    cost.intra = link_cost(cluster.intra.latency, cluster.intra.bandwidth, reading);
    cost.nic = link_cost(cluster.nic.latency, cluster.nic.bandwidth, reading);
  } else {
    cost.intra =
        link_cost(or_catalogue(profile->intra_latency, cluster.intra.latency),
                  or_catalogue(profile->intra_bandwidth, cluster.intra.bandwidth), reading);
    cost.nic = link_cost(or_catalogue(profile->nic_latency, cluster.nic.latency),
                         or_catalogue(profile->nic_bandwidth, cluster.nic.bandwidth), reading);
  }
  constexpr double bytes_moved_per_byte_reduced = 3;
  cost.gamma = bytes_moved_per_byte_reduced / effective_memory_bandwidth(cluster.device, reading);
  return cost;
}

}  // namespace paceline::simulator
