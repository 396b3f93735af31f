// Tests: tests/simulator/equivalence_test.cc; tests/agreement/engine_agreement_test.cc holds
// collapsed runs against enumerated ones.
//
// IMPLEMENTATION. By structure, with M the modulus and q the ranks of a (sub)schedule:
//  - M = q labels every rank apart: equitable.
//  - Rings and direct exchanges commute with the rotation r -> r + 1 mod q, and recursive halving
//    and doubling with r -> r xor d for every d. The orbits of rotation by M are the labels mod M;
//    so are, for M and q powers of two, the orbits of xor with the multiples of M. Any M that
//    divides q is equitable.
//  - Chains, trees and point to point tell every rank apart: only M = q.
//  - The same schedule in blocks of k that cover all ranks: k | M fixes the position in the block,
//    any inner schedule will do; M | k is equitable if it is for the inner schedule.
//  - Interleaved groups {j, j+k, ...}: member i is rank j + i k. Translation by k M' of ranks is
//    translation by M' of members: M = k M' is equitable if M' is for the inner schedule. If
//    all k groups take part, M | k is equitable too if all members are alike (modulus 1).
//  - A sequence: all of its parts. A part of the bucket: its inner schedule.
//
// Nodes. Let g | M. For rotations and blocks, `to - from` depends on the label, but for wraps
// that always leave the node (p > g) and so the node of `to` is the node of `from` iff
// from mod g + (to - from) lies in [0, g). For xor with d in groups of stride k: if k d < M the
// sign of `to - from` depends on the label; otherwise |to - from| >= M >= g, another node. The
// NIC of a node carries what its g ranks send: their labels are a block of g labels.
#include "simulator/engine/equivalence.h"

#include <type_traits>
#include <variant>
#include <vector>

namespace paceline::simulator {
namespace {

using namespace models;

bool equitable_groups(const Within& w, int modulus) {
  if (w.groups.members.size() != 1) return false;
  const Progression& members = w.groups.members.front();
  if (members.first != 0) return false;
  const int size = members.count;
  const bool blocks =
      members.stride == 1 && w.groups.stride == size && w.groups.count * size == w.ranks;
  if (blocks) {
    if (modulus % size == 0) return true;
    return size % modulus == 0 && is_equitable(w.inner, modulus);
  }
  const int stride = members.stride;
  const bool all_groups = w.groups.count == stride && w.groups.stride == 1;
  const bool interleaved = size * stride == w.ranks && (all_groups || w.groups.count == 1);
  if (!interleaved) return false;
  if (modulus % stride == 0) return is_equitable(w.inner, modulus / stride);
  return all_groups && stride % modulus == 0 && is_equitable(w.inner, 1);
}

}  // namespace

bool is_equitable(const Schedule& schedule, int modulus) {
  if (modulus == schedule.ranks()) return true;
  return std::visit(
      [&](const auto& node) {
        using Node = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<Node, Sequence>) {
          for (const Schedule& part : node.parts) {
            if (!is_equitable(part, modulus)) return false;
          }
          return true;
        } else if constexpr (std::is_same_v<Node, Within>) {
          return equitable_groups(node, modulus);
        } else if constexpr (std::is_same_v<Node, OnPart>) {
          return is_equitable(node.inner, modulus);
        } else if constexpr (std::is_same_v<Node, ChainReduce> ||
                             std::is_same_v<Node, ChainBroadcast> ||
                             std::is_same_v<Node, BinomialReduce> ||
                             std::is_same_v<Node, BinomialBroadcast> ||
                             std::is_same_v<Node, PointToPoint>) {
          return false;
        } else {
          static_assert(
              std::is_same_v<Node, RingReduceScatter> || std::is_same_v<Node, RingAllGather> ||
              std::is_same_v<Node, RecursiveHalving> || std::is_same_v<Node, RecursiveDoubling> ||
              std::is_same_v<Node, DirectReduceScatter> || std::is_same_v<Node, DirectAllGather>);
          return true;
        }
      },
      schedule.node());
}

int collapsed_ranks(const Schedule& schedule, int ranks_per_node) {
  const int ranks = schedule.ranks();
  if (ranks_per_node >= ranks || ranks % ranks_per_node != 0) return ranks;
  const int nodes = ranks / ranks_per_node;
  std::vector<int> large_divisors;
  for (int d = 1; d <= nodes / d; ++d) {
    if (nodes % d != 0) continue;
    if (is_equitable(schedule, d * ranks_per_node)) return d * ranks_per_node;
    if (d != nodes / d) large_divisors.push_back(nodes / d);
  }
  for (auto d = large_divisors.rbegin(); d != large_divisors.rend(); ++d) {
    if (is_equitable(schedule, *d * ranks_per_node)) return *d * ranks_per_node;
  }
  return ranks;
}

}  // namespace paceline::simulator
