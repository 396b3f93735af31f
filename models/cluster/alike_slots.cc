// Tests: tests/models/alike_slots_test.cc, tests/simulator/renumbered_nodes_test.cc.
#include "models/cluster/alike_slots.h"

#include <algorithm>
#include <map>
#include <vector>

#include "models/cluster/link_rules.h"

namespace paceline::models {
namespace {

// Blocks of this many neighbouring slots, in blocks of the level before.
struct Level {
  int slots = 1;
  bool may_change_places = false;  // within a block of the level before
};

// From the largest blocks to single places; and which level has the nodes.
struct Levels {
  std::vector<Level> all;
  std::size_t nodes = 0;
};

void add_places(const Cluster& cluster, std::vector<Level>& levels) {
  const int g = cluster.ranks_per_node;
  // Where a place has NICs of its own, they change places with it.
  const bool by_nic = cluster.nics_per_node > 1 && cluster.nics_per_node <= g;
  std::vector<int> parts;
  if (by_nic) parts.push_back(cluster.nics_per_node);
  if (passes_host(cluster)) {
    for (const int count : {cluster.host->sockets, cluster.host->switches})
      if (count > 1) parts.push_back(count);
  }
  std::sort(parts.begin(), parts.end());
  bool are_nested = cluster.intra_kind != IntraKind::ring;
  int before = 1;
  for (const int count : parts) {
    are_nested = are_nested && g % count == 0 && count % before == 0;
    before = count;
  }
  if (!are_nested) {
    levels.push_back({1, false});
    return;
  }
  const bool are_rails =
      cluster.nic_use == NicUse::affinity && cluster.fabric.kind == FabricKind::rail;
  const int fixed_parts = by_nic && are_rails ? cluster.nics_per_node : 0;
  for (const int count : parts) levels.push_back({g / count, count > fixed_parts});
  levels.push_back({1, true});
}

Levels levels_of(const Cluster& cluster) {
  Levels levels;
  if (cluster.fabric.kind == FabricKind::fat_tree) {
    int nodes = 1;
    for (const FatTreeLevel& level : cluster.fabric.levels) {
      nodes *= level.members;
      if (nodes >= cluster.nodes) break;  // one switch joins all
      levels.all.push_back({nodes * cluster.ranks_per_node, true});
    }
    std::reverse(levels.all.begin(), levels.all.end());
  }
  levels.nodes = levels.all.size();
  levels.all.push_back({cluster.ranks_per_node, cluster.fabric.kind != FabricKind::torus});
  add_places(cluster, levels.all);
  return levels;
}

// Gives each slot that it is asked for its new number.
class Renumbering {
 public:
  explicit Renumbering(const Levels& levels)
      : levels_(levels), known_(levels.all.size()), met_(levels.all.size()) {}

  int of(int slot) {
    int first = 0;   // of the block that the slot has come to, by its new number
    int parent = 0;  // that block, by its old number
    int parent_slots = 0;
    for (std::size_t i = 0; i < levels_.all.size(); ++i) {
      const Level& level = levels_.all[i];
      const int block = slot / level.slots;
      const auto [entry, is_new] = known_[i].try_emplace(block);
      if (is_new) {
        const int place = i == 0 ? block : slot % parent_slots / level.slots;
        entry->second = first + level.slots * (level.may_change_places ? met_[i][parent]++ : place);
      }
      first = entry->second;
      parent = block;
      parent_slots = level.slots;
    }
    return first;
  }
  // The new number of a node on which a slot was asked for; else -1.
  [[nodiscard]] int node(int old) const {
    const auto found = known_[levels_.nodes].find(old);
    return found == known_[levels_.nodes].end() ? -1
                                                : found->second / levels_.all[levels_.nodes].slots;
  }

 private:
  const Levels& levels_;
  std::vector<std::map<int, int>> known_;  // of each level: the first new slot of a block
  std::vector<std::map<int, int>> met_;    // of each level: how many blocks of a block before
};

}  // namespace

AlikeSlots alike_slots(const Cluster& cluster) {
  if (cluster.slots.empty() || cluster.platform != nullptr)
    return {cluster.slots, cluster.slow_nodes};
  const Levels levels = levels_of(cluster);
  Renumbering renumbering(levels);
  AlikeSlots alike;
  alike.slots.reserve(cluster.slots.size());
  for (const int slot : cluster.slots) alike.slots.push_back(renumbering.of(slot));
  for (const auto& [node, share] : cluster.slow_nodes)
    if (const int renumbered = renumbering.node(node); renumbered >= 0)
      alike.slow_nodes.emplace(renumbered, share);
  return alike;
}

}  // namespace paceline::models
