// Tests: tests/models/cluster_catalog_test.cc, tests/models/cluster_test.cc.
#include "models/cluster/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/base/names.h"
#include "models/base/to_size.h"

namespace paceline::models {

std::string_view name(Placement placement) {
  return name_in(placements, placement);
}

Placement placement_from_name(std::string_view text) {
  std::vector<std::string> names;
  for (const auto& [value, known] : placements) {
    if (known == text) return value;
    names.emplace_back(known);
  }
  names.emplace_back("a list of slots");
  throw unknown_name("placement", text, names);
}

void check_slots(const std::vector<int>& slots, const Cluster& cluster) {
  std::vector<bool> taken(to_size(cluster.ranks()));
  for (const int slot : slots) {
    if (slot < 0 || slot >= cluster.ranks()) {
      throw InputError(fmt::format("slot {} is none of cluster {}", slot, cluster.name),
                       fmt::format("write 0 to {}", cluster.ranks() - 1));
    }
    if (taken[to_size(slot)])
      throw InputError(fmt::format("slot {} stands twice", slot), "a slot holds one rank");
    taken[to_size(slot)] = true;
  }
}

std::string described_placement(const Cluster& cluster) {
  constexpr std::size_t most_listed = 16;
  if (cluster.slots.empty()) return std::string(name(cluster.placement));
  const std::size_t listed = std::min(cluster.slots.size(), most_listed);
  return fmt::format(
      "ranks in slots {}{}",
      fmt::join(cluster.slots.begin(), cluster.slots.begin() + static_cast<std::ptrdiff_t>(listed),
                ", "),
      listed < cluster.slots.size() ? fmt::format(", ... ({} in all)", cluster.slots.size()) : "");
}

std::vector<int> slots_of_ranks(const std::vector<int>& listed, Placement placement,
                                int ranks_per_node, int ranks) {
  PACELINE_ASSERT(listed.empty() || listed.size() >= to_size(ranks), "every rank has a slot");
  if (!listed.empty()) return {listed.begin(), listed.begin() + ranks};
  std::vector<int> slots(to_size(ranks));
  const int nodes = (ranks - 1) / ranks_per_node + 1;
  for (int rank = 0; rank < ranks; ++rank)
    slots[to_size(rank)] =
        placement == Placement::round_robin ? rank % nodes * ranks_per_node + rank / nodes : rank;
  return slots;
}

std::vector<std::vector<int>> ranks_by_node(const std::vector<int>& slots, int ranks_per_node) {
  std::vector<std::vector<int>> nodes;
  std::vector<int> index;  // of each node in `nodes`, or -1
  for (std::size_t rank = 0; rank < slots.size(); ++rank) {
    const auto node = to_size(node_of(slots[rank], ranks_per_node));
    if (node >= index.size()) index.resize(node + 1, -1);
    if (index[node] < 0) {
      index[node] = static_cast<int>(nodes.size());
      nodes.emplace_back();
    }
    nodes[to_size(index[node])].push_back(static_cast<int>(rank));
  }
  return nodes;
}

std::vector<std::vector<int>> slots_by_node(const std::vector<int>& slots, int ranks_per_node) {
  std::vector<std::vector<int>> nodes = ranks_by_node(slots, ranks_per_node);
  for (std::vector<int>& node : nodes)
    for (int& entry : node) entry = slots[to_size(entry)];
  return nodes;
}

std::vector<std::vector<int>> ranks_by_node(const Cluster& cluster, int ranks) {
  return ranks_by_node(
      slots_of_ranks(cluster.slots, cluster.placement, cluster.ranks_per_node, ranks),
      cluster.ranks_per_node);
}

namespace {

// Groups of `size` slots that have a rank; of more ranks than are listed, as many groups as they fill.
int used_groups(const Cluster& cluster, int ranks, int size) {
  const auto listed = cluster.slots.size();
  const bool is_filled =
      listed == 0 ? cluster.placement == Placement::node_major : listed < to_size(ranks);
  if (is_filled) return (ranks - 1) / size + 1;
  const std::vector<int> slots =
      slots_of_ranks(cluster.slots, cluster.placement, cluster.ranks_per_node, ranks);
  return static_cast<int>(ranks_by_node(slots, size).size());
}

}  // namespace

int used_nodes(const Cluster& cluster, int ranks) {
  return used_groups(cluster, ranks, cluster.ranks_per_node);
}

int nics_beside(const std::vector<int>& slots_of_node, int nics_per_node, int ranks_per_node) {
  const bool has_more_nics = nics_per_node > ranks_per_node;
  std::vector<bool> is_used(to_size(std::max(nics_per_node, ranks_per_node)));
  for (const int slot : slots_of_node) {
    const int place = slot_of(slot, ranks_per_node);
    is_used[to_size(has_more_nics ? place : place * nics_per_node / ranks_per_node)] = true;
  }
  int beside = 0;
  for (int nic = 0; nic < nics_per_node; ++nic)
    beside += is_used[to_size(has_more_nics ? nic * ranks_per_node / nics_per_node : nic)] ? 1 : 0;
  return beside;
}

int used_hosts(const Cluster& cluster, int ranks) {
  return used_groups(cluster, ranks, cluster.ranks_per_node / cluster.hosts_per_node);
}

int placed_ranks(const Cluster& cluster) {
  return cluster.slots.empty() ? cluster.ranks() : static_cast<int>(cluster.slots.size());
}

void check_ranks(const Cluster& cluster, std::int64_t ranks) {
  if (!cluster.slots.empty() && ranks > static_cast<std::int64_t>(cluster.slots.size()) &&
      ranks <= cluster.ranks()) {
    throw InputError(
        fmt::format("{} ranks, and the placement lists slots for {}", ranks, cluster.slots.size()),
        fmt::format("choose 1 to {}, or list more slots", cluster.slots.size()));
  }
  if (ranks >= 1 && ranks <= cluster.ranks()) return;
  if (!cluster.has_nic() && cluster.platform == nullptr && ranks > 1) {
    throw InputError(
        fmt::format("{} ranks on cluster {}, one node without nic", ranks, cluster.name),
        fmt::format("choose 1 to {}, or add nodes and nic to its file", cluster.ranks()));
  }
  throw InputError(fmt::format("{} ranks do not fit cluster {}", ranks, cluster.name),
                   fmt::format("choose 1 to {} ({} nodes x {} ranks)", cluster.ranks(),
                               cluster.nodes, cluster.ranks_per_node));
}

}  // namespace paceline::models
