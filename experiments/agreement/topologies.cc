// Tests: tests/agreement/shared_link_agreement_test.cc.
#include "experiments/agreement/topologies.h"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "models/base/names.h"

namespace paceline::experiments {
namespace {

using models::FabricKind;
using models::IntraKind;
using models::NicUse;
using simulator::CommunicationCost;

CommunicationCost nodes_of(int ranks_per_node, int nics, NicUse use = NicUse::striped) {
  return {.ranks_per_node = ranks_per_node,
          .intra = {Seconds{2e-6}, SecondsPerByte{1 / 16e9}},
          .nic = {Seconds{5e-6}, SecondsPerByte{1 / 12.5e9}},
          .nics_per_node = nics,
          .nic_use = use,
          .gamma = SecondsPerByte{1 / 500e9}};
}

CommunicationCost tree(std::vector<models::FatTreeLevel> levels) {
  CommunicationCost cost = nodes_of(1, 1);
  cost.fabric = {
      .kind = FabricKind::fat_tree, .levels = std::move(levels), .hop_latency = Seconds{5e-7}};
  return cost;
}

// The largest divisor of a number that is at most its square root.
int divisor_near_root(int value, double root) {
  int divisor = static_cast<int>(std::floor(root + 1e-9));
  while (value % divisor != 0) --divisor;
  return divisor;
}

CommunicationCost grid(std::vector<int> shape) {
  CommunicationCost cost = nodes_of(1, 1);
  cost.fabric = {
      .kind = FabricKind::torus, .shape = std::move(shape), .hop_latency = Seconds{5e-7}};
  return cost;
}

CommunicationCost torus_2d(int ranks) {
  const int x = divisor_near_root(ranks, std::sqrt(ranks));
  return grid({x, ranks / x});
}

CommunicationCost torus_3d(int ranks) {
  const int x = divisor_near_root(ranks, std::cbrt(ranks));
  const int y = divisor_near_root(ranks / x, std::sqrt(ranks / x));
  return grid({x, y, ranks / x / y});
}

CommunicationCost rail(int) {
  CommunicationCost cost = nodes_of(4, 4, NicUse::affinity);
  cost.fabric = {.kind = FabricKind::rail, .oversubscription = 2, .hop_latency = Seconds{5e-7}};
  return cost;
}

CommunicationCost joined(IntraKind kind, int ranks_per_node, int nics) {
  CommunicationCost cost = nodes_of(ranks_per_node, nics);
  cost.intra_kind = kind;
  return cost;
}

constexpr std::array all = {
    Topology{"flat", "one rank on each node, one non-blocking switch",
             [](int) { return nodes_of(1, 1); }},
    Topology{"nic-8", "8 ranks behind one NIC, one non-blocking switch",
             [](int) { return nodes_of(8, 1); }},
    Topology{"fat-tree-2", "one rank on each node, two-level fat tree, 4 nodes a leaf at 4:1",
             [](int) {
               return tree({{4, 4.0}});
             }},
    Topology{"fat-tree-3",
             "one rank on each node, three-level fat tree, 4 nodes a leaf at 2:1, 2 leaves a pod "
             "at 2:1",
             [](int) {
               return tree({{4, 2.0}, {2, 2.0}});
             }},
    Topology{"torus-2d", "one rank on each node, 2D torus as square as its nodes allow", torus_2d},
    Topology{"torus-3d", "one rank on each node, 3D torus as cubic as its nodes allow", torus_3d},
    Topology{"rail-4", "4 ranks and 4 NICs a node, a rail for each NIC, spine at 2:1", rail},
    Topology{"ring-8", "8 ranks a node joined to a ring, 4 NICs that stripe each message",
             [](int) { return joined(IntraKind::ring, 8, 4); }},
    Topology{"all-to-all-4", "4 ranks a node, a link between every two, one NIC",
             [](int) { return joined(IntraKind::all_to_all, 4, 1); }},
};

}  // namespace

std::span<const Topology> topologies() {
  return all;
}

const Topology& topology(std::string_view name) {
  std::vector<std::string> names;
  for (const Topology& entry : all) {
    if (entry.name == name) return entry;
    names.emplace_back(entry.name);
  }
  throw unknown_name("topology", name, names);
}

}  // namespace paceline::experiments
