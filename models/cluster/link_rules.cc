// Tests: tests/models/link_rules_test.cc.
#include "models/cluster/link_rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "models/base/to_size.h"

namespace paceline::models {
namespace {

Figure<BytesPerSecond> shares_of(BytesPerSecond whole, double value, double low, double high,
                                 std::string source) {
  return {value * whole, low * whole, high * whole, Provenance::assumed, std::move(source)};
}

struct DistanceShare {
  std::optional<NicDistance> distance;
  double value;
  double low;
  double high;
  std::string_view where;
};

const DistanceShare& share_at(std::optional<NicDistance> distance) {
  static constexpr std::array<DistanceShare, 6> shares = {
      {{std::nullopt, 0.83, 0.44, 1, "at a distance that nobody says"},
       {NicDistance::pix, 1, 1, 1, ""},
       {NicDistance::pxb, 1, 1, 1, ""},
       {NicDistance::phb, 0.83, 0.54, 1, "at the root of the processor"},
       {NicDistance::node, 0.62, 0.47, 0.89, "across roots of the processor"},
       {NicDistance::sys, 0.52, 0.31, 0.83, "across processors"}}};
  return *std::find_if(shares.begin(), shares.end(),
                       [&](const DistanceShare& share) { return share.distance == distance; });
}

}  // namespace

Figure<BytesPerSecond> tcp_bandwidth(const Figure<BytesPerSecond>& line_rate, int flows,
                                     int ranks_per_node) {
  constexpr BytesPerSecond one_flow{13.7e9 / 8};
  constexpr double most = 0.95;
  constexpr double most_at_low = 0.85;
  constexpr int many_ranks = 4;
  constexpr double shared = 0.7;
  constexpr double off_alone = 2;
  constexpr double off_shared = 2.1;  // exp(hypot(log 2, log(0.97 / 0.7)))
  const bool crowded = ranks_per_node >= many_ranks;
  const double share = flows * one_flow / line_rate.value * (crowded ? shared : 1);
  const double off = crowded ? off_shared : off_alone;
  return shares_of(
      line_rate.value, std::min(most, share), std::min(most_at_low, share / off),
      std::min(most, share * off),
      fmt::format("rule: {} TCP flow{} of 13.7 Gbit/s (bytedance/byteps#29){}, up to 0.95 of the "
                  "line rate",
                  flows, flows == 1 ? "" : "s",
                  crowded ? ", times 0.7 for 4 or more ranks a node (NVIDIA/nccl#209, #450, "
                            "NVIDIA/nccl-tests#83)"
                          : ""));
}

Figure<BytesPerSecond> bandwidth_without_gpudirect(const Figure<BytesPerSecond>& line_rate) {
  return shares_of(line_rate.value, 0.48, 0.42, 0.67,
                   "rule: 0.48 of the line rate without GPUDirect (NVIDIA/nccl#465, #243, #412)");
}

Figure<BytesPerSecond> bandwidth_at_distance(const Cluster& cluster) {
  const Figure<BytesPerSecond>& beside = cluster.nic.bandwidth;
  const bool reads_devices =
      cluster.device.multiprocessors && cluster.gpudirect && cluster.nic.protocol == Protocol::rdma;
  const bool is_beside = cluster.nics_per_node >= cluster.ranks_per_node;
  if (!reads_devices || (!cluster.nic_distance && is_beside)) return beside;
  const auto& share = share_at(cluster.nic_distance);
  if (share.low == 1) return beside;
  return {share.value * beside.value, share.low * beside.low, share.high * beside.high,
          Provenance::assumed,
          fmt::format("{}; rule: {:g} of it {} (NVIDIA/nccl#465, #412, #1579)", beside.source,
                      share.value, share.where)};
}

Figure<BytesPerSecond> staged_bandwidth(const Figure<BytesPerSecond>& lane) {
  return {lane.value / 1.4, lane.low / 1.45, lane.high / 1.35, Provenance::assumed,
          "rule: 1/1.4 of the lane where copies through the host go both ways (NVIDIA/nccl#814)"};
}

const Figure<BytesPerSecond>& bandwidth_for(const Link& link, int ranks_in_use) {
  if (link.bandwidth_by_ranks.empty()) return link.bandwidth;
  const auto above = link.bandwidth_by_ranks.upper_bound(ranks_in_use);
  return above == link.bandwidth_by_ranks.begin() ? above->second : std::prev(above)->second;
}

bool passes_host(const Cluster& cluster) {
  return cluster.host && !(cluster.host->peer_to_peer && cluster.intra.is(LinkKind::nvlink));
}

int most_ranks_on_a_node(const Cluster& cluster, int ranks) {
  const int g = cluster.ranks_per_node;
  if (!cluster.slots.empty()) {
    const auto listed = static_cast<int>(cluster.slots.size());
    std::vector<int> on_node(to_size(cluster.nodes));
    for (int rank = 0; rank < (ranks == 0 ? listed : std::min(ranks, listed)); ++rank)
      ++on_node[to_size(cluster.slots[to_size(rank)] / g)];
    return std::max(1, *std::max_element(on_node.begin(), on_node.end()));
  }
  if (ranks == 0) return g;
  const int nodes = (ranks - 1) / g + 1;
  const bool dealt_out = cluster.placement == Placement::round_robin;
  return dealt_out ? (ranks - 1) / nodes + 1 : std::min(ranks, g);
}

}  // namespace paceline::models
