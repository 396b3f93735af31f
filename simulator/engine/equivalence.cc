// Tests: tests/simulator/equivalence_test.cc; tests/agreement/engine_agreement_test.cc holds
// collapsed runs against enumerated ones.
//
// IMPLEMENTATION. By structure, with M the modulus and q the ranks of a (sub)schedule:
//  - M = q labels every rank apart: equitable.
//  - What commutes with the rotation r -> r + M mod q is equitable, because the orbits of that are the
//    labels mod M: rings, dissemination and pairwise exchange for any M, servers for multiples of q/s, blocks of k
//    for multiples of k, interleaved groups k apart for M = k M' if their inner schedule commutes
//    with rotation by M'. A renumbering i -> m i + o turns rotation by M into rotation by M/m mod
//    q, which generates the same group, because m is coprime to q.
//  - Recursive halving, doubling and exchange commute with r -> r xor d for every d: for M and q
//    powers of two, the orbits of xor with the multiples of M are the labels mod M. Any M that
//    divides q is equitable.
//  - Chains, trees, block folds and point to point tell every rank apart: only M = q.
//  - The same schedule in blocks of k that cover all ranks: k | M fixes the position in the block,
//    any inner schedule will do; M | k is equitable if it is for the inner schedule.
//  - Interleaved groups {j, j+k, ...}: member i is rank j + i k. Translation by k M' of ranks is
//    translation by M' of members: M = k M' is equitable if M' is for the inner schedule. If
//    all k groups take part, M | k is equitable too if all members are alike (modulus 1).
//  - A sequence, or parts in parallel, are equitable if all of their parts are; a part of the bucket
//    and a pipeline are if what is inside is.
//
// Nodes, and likewise all that is under one switch of a fat tree, with its ranks for g. Let g | M.
// For rotations and blocks, `to - from` mod p depends on the label, except for wraps that always leave
// the node (p > g) and so the node of `to` is the node of `from` iff from mod g + (to - from) lies
// in [0, g). For xor with d in groups of stride k: if k d < M the sign of `to - from` depends on
// the label; otherwise |to - from| >= M >= g, another node. The NIC of a node carries what its g
// ranks send: their labels are a block of g labels.
#include "simulator/engine/equivalence.h"

#include <algorithm>
#include <type_traits>
#include <variant>
#include <vector>

#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

using namespace models;

bool groups_are_translated(const Within& w, int by) {
  if (w.groups.members.size() != 1) return false;
  const Progression& members = w.groups.members.front();
  const int size = members.count;
  const int stride = members.stride;
  if (members.first != 0) return false;
  const bool blocks = stride == 1 && w.groups.count * size == w.ranks &&
                      (w.groups.count == 1 || w.groups.stride == size);
  if (blocks) return by % size == 0;
  const bool all_groups = w.groups.count == stride && w.groups.stride == 1;
  const bool interleaved = size * stride == w.ranks && (all_groups || w.groups.count == 1);
  return interleaved && by % stride == 0 && is_translated(w.inner, by / stride);
}

template <class Servers>
bool servers_are_translated(const Servers& p, int by) {
  return p.ranks % p.servers == 0 && by % (p.ranks / p.servers) == 0;
}

bool all_symmetric(const std::vector<Schedule>& parts) {
  return std::all_of(parts.begin(), parts.end(), is_symmetric);
}

}  // namespace

// Server j of p among p ranks is rank j, each part is 1/p of the bucket, and every rank sends each
// server its part: any exchange of ranks, parts with them, leaves that as it is. A renumbering of all
// ranks is such an exchange.
bool is_symmetric(const Schedule& schedule) {
  return std::visit(
      [&](const auto& node) {
        using Node = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<Node, Sequence> || std::is_same_v<Node, Parallel>) {
          return all_symmetric(node.parts);
        } else if constexpr (std::is_same_v<Node, OnPart> || std::is_same_v<Node, Pipelined>) {
          return is_symmetric(node.inner);
        } else if constexpr (std::is_same_v<Node, Renumbered>) {
          return node.block == node.inner.ranks() && is_symmetric(node.inner);
        } else if constexpr (std::is_same_v<Node, ServerPush> || std::is_same_v<Node, ServerPull>) {
          return node.servers == node.ranks;
        } else {
          return false;
        }
      },
      schedule.node());
}

bool is_translated(const Schedule& schedule, int by) {
  if (by == schedule.ranks()) return true;
  return std::visit(
      [&](const auto& node) {
        using Node = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<Node, Sequence> || std::is_same_v<Node, Parallel>) {
          return std::all_of(node.parts.begin(), node.parts.end(),
                             [by](const Schedule& part) { return is_translated(part, by); });
        } else if constexpr (std::is_same_v<Node, OnPart> || std::is_same_v<Node, Pipelined>) {
          return is_translated(node.inner, by);
        } else if constexpr (std::is_same_v<Node, Renumbered>) {
          return (node.block == node.inner.ranks() || by % node.block == 0) &&
                 is_translated(node.inner, by);
        } else if constexpr (std::is_same_v<Node, Within>) {
          return groups_are_translated(node, by);
        } else if constexpr (std::is_same_v<Node, ServerPush> || std::is_same_v<Node, ServerPull>) {
          return servers_are_translated(node, by);
        } else {
          return is_one_of<Node, RingReduceScatter, RingAllGather, RingShift, PairwiseAllToAll,
                           BruckGather, BruckScatter, PatGather, PatScatter, BruckAllToAll>;
        }
      },
      schedule.node());
}

namespace {

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
        if constexpr (std::is_same_v<Node, Sequence> || std::is_same_v<Node, Parallel>) {
          return std::all_of(node.parts.begin(), node.parts.end(), [modulus](const Schedule& part) {
            return is_equitable(part, modulus);
          });
        } else if constexpr (std::is_same_v<Node, Within>) {
          return equitable_groups(node, modulus);
        } else if constexpr (std::is_same_v<Node, OnPart> || std::is_same_v<Node, Pipelined>) {
          return is_equitable(node.inner, modulus);
        } else if constexpr (is_one_of<Node, RecursiveHalving, RecursiveDoubling, OrderedHalving,
                                       OrderedDoubling, RecursiveExchange>) {
          return true;
        } else {
          return is_translated(schedule, modulus);
        }
      },
      schedule.node());
}

int collapsed_ranks(std::span<const Schedule> schedules, const Routes& routes) {
  const int ranks = routes.ranks();
  const int unit = routes.unit();
  if (unit == 0 || unit >= ranks || ranks % unit != 0) return ranks;
  const auto is_equitable_for_all = [&](int modulus) {
    return std::all_of(schedules.begin(), schedules.end(), [&](const Schedule& schedule) {
      return routes.needs_translation() ? is_translated(schedule, modulus)
                                        : is_equitable(schedule, modulus);
    });
  };
  const int units = ranks / unit;
  std::vector<int> large_divisors;
  for (int d = 1; d <= units / d; ++d) {
    if (units % d != 0) continue;
    if (is_equitable_for_all(d * unit)) return d * unit;
    if (d != units / d) large_divisors.push_back(units / d);
  }
  for (auto d = large_divisors.rbegin(); d != large_divisors.rend(); ++d) {
    if (is_equitable_for_all(*d * unit)) return *d * unit;
  }
  return ranks;
}

Positions positions_of(std::span<const Schedule> schedules, const Routes& routes) {
  const int ranks = routes.ranks();
  const int modulus = collapsed_ranks(schedules, routes);
  if (modulus < ranks) return {ranks, modulus, 0};
  const int unit = routes.unit();
  const bool has_tail = unit > 0 && ranks > 2 * unit && !routes.needs_translation() &&
                        std::all_of(schedules.begin(), schedules.end(), is_symmetric);
  return has_tail ? Positions(ranks, unit, ranks % unit) : Positions(ranks);
}

Completion completion_of(const Positions& positions, std::span<const double> finish_s) {
  Completion completion;
  const bool has_tail = positions.is_collapsed() && positions.whole() < positions.ranks();
  const int stored = has_tail ? positions.ranks() : positions.count();
  completion.finish.reserve(to_size(stored));
  for (int rank = 0; rank < stored; ++rank) {
    const int position = has_tail ? positions.of(rank) : rank;
    completion.finish.emplace_back(finish_s[to_size(position)]);
  }
  return completion;
}

}  // namespace paceline::simulator
