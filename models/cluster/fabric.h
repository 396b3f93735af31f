// How the ranks of a node are joined, and how the nodes are joined.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.h"

namespace paceline::models {

// How the ranks of a node are joined.
enum class IntraKind {
  switched,    // one port for each rank into a non-blocking switch (PCIe switch, NVSwitch); traffic
               // that leaves the node passes the port too
  ring,        // a link in each direction between neighbouring slots; messages go the shorter way
  all_to_all,  // a link in each direction between every two ranks
};

enum class FabricKind {
  flat,      // one non-blocking switch
  fat_tree,  // levels of switches; uplinks may have less bandwidth than what is below them
  torus,     // nodes in a grid whose rows and columns are rings; routes are dimension-ordered and
             // take the shorter way around each ring
  rail,      // NIC j of every node is on switch j, a "rail", and a spine joins the rails
};

// The switches of one level of a fat tree.
struct FatTreeLevel {
  int members = 1;              // switches of the level below, or nodes, under one switch
  double oversubscription = 1;  // bandwidth from below over bandwidth to above, >= 1

  bool operator==(const FatTreeLevel&) const = default;
};

struct Fabric {
  FabricKind kind = FabricKind::flat;
  // The levels of a fat tree from the leaf switches up, without the topmost switches, which join
  // all. One level makes a two-level tree (leaf and spine), two levels a three-level tree.
  std::vector<FatTreeLevel> levels = {};
  std::vector<int> shape = {};  // of a torus: nodes along X, Y and perhaps Z
  double oversubscription = 1;  // of the spine between rails
  Seconds hop_latency{0};       // of each switch, or node of a torus, after the first of a route

  bool operator==(const Fabric&) const = default;
};

inline constexpr std::array<std::pair<FabricKind, std::string_view>, 4> fabric_kinds = {
    {{FabricKind::flat, "flat"},
     {FabricKind::fat_tree, "fat-tree"},
     {FabricKind::torus, "torus"},
     {FabricKind::rail, "rail"}}};
inline constexpr std::array<std::pair<IntraKind, std::string_view>, 3> intra_kinds = {
    {{IntraKind::switched, "switch"},
     {IntraKind::ring, "ring"},
     {IntraKind::all_to_all, "all-to-all"}}};

[[nodiscard]] std::string_view name(FabricKind kind);
[[nodiscard]] std::string_view name(IntraKind kind);
// "flat", "two-level fat tree, 16 nodes a leaf at 2:1", "torus 8 x 8", ...
[[nodiscard]] std::string described(const Fabric& fabric);

}  // namespace paceline::models
