// The links of a message's way by the words of routes.h, and nothing but them: names in place of
// numbers, coordinates in place of strides. The judges of the engines read this, not Routes.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "simulator/cost/communication_cost.h"

namespace paceline::test {

class ReferenceRoutes {
 public:
  struct Way {
    std::map<std::string, double> links;  // seconds for a byte, by name
    double alpha_s = 0;
  };

  ReferenceRoutes(const simulator::CommunicationCost& cost, int ranks)
      : cost_(cost), slots_(cost.slots) {
    const int g = cost.ranks_per_node;
    const int nodes = (ranks + g - 1) / g;
    used_nodes_ = nodes;
    if (slots_.empty() && cost.placement == models::Placement::round_robin) {
      for (int place = 0; place < g; ++place) {
        for (int node = 0; node < nodes; ++node) slots_.push_back(node * g + place);
      }
    } else if (slots_.empty()) {
      for (int rank = 0; rank < ranks; ++rank) slots_.push_back(rank);
    }
    slots_.resize(static_cast<std::size_t>(ranks));
    for (const int slot : slots_) used_nodes_ = std::max(used_nodes_, slot / g + 1);
  }

  [[nodiscard]] Way way(int from_rank, int to_rank) const {
    const int g = cost_.ranks_per_node;
    const int from = slots_[static_cast<std::size_t>(from_rank)];
    const int to = slots_[static_cast<std::size_t>(to_rank)];
    Way way;
    if (cost_.intra_kind == models::IntraKind::switched) {
      way.links[fmt::format("from {}", from)] = cost_.intra.beta.value();
      way.links[fmt::format("into {}", to)] = cost_.intra.beta.value();
    }
    if (from / g == to / g) {
      way.alpha_s = cost_.intra.alpha.value();
      inside(way, from / g, from % g, to % g);
      return way;
    }
    const int switches = outside(way, from, to);
    way.alpha_s = cost_.nic.alpha.value() + cost_.fabric.hop_latency.value() * (switches - 1);
    return way;
  }

 private:
  void inside(Way& way, int node, int from, int to) const {
    const int g = cost_.ranks_per_node;
    const double beta = cost_.intra.beta.value();
    if (cost_.intra_kind == models::IntraKind::switched && cost_.host) host(way, node, from, to);
    if (cost_.intra_kind == models::IntraKind::all_to_all)
      way.links[fmt::format("node {}, {} to {}", node, from, to)] = beta;
    if (cost_.intra_kind != models::IntraKind::ring) return;
    const int clockwise = (to + g - from) % g;
    const bool forward = clockwise <= g - clockwise;
    for (int at = from; at != to; at = (at + (forward ? 1 : g - 1)) % g)
      way.links[fmt::format("node {}, {} {}", node, at, forward ? "forward" : "back")] = beta;
  }

  void host(Way& way, int node, int from, int to) const {
    const simulator::HostCost& host = *cost_.host;
    const auto add = [&](const std::string& name, SecondsPerByte beta) {
      if (beta.value() > 0) way.links[fmt::format("node {}, {}", node, name)] = beta.value();
    };
    const auto block = [&](int place, int blocks) { return place * blocks / cost_.ranks_per_node; };
    if (host.switches > 0) {
      const int a = block(from, host.switches);
      const int b = block(to, host.switches);
      if (host.staged || a != b) {
        add(fmt::format("up from switch {}", a), host.uplink);
        add(fmt::format("down to switch {}", b), host.uplink);
      }
    }
    const int a = block(from, host.sockets);
    const int b = block(to, host.sockets);
    if (a != b) {
      add(fmt::format("out of socket {}", a), host.crossing);
      add(fmt::format("into socket {}", b), host.crossing);
    }
    if (host.staged) add("memory", host.memory);
  }

  [[nodiscard]] double share(int node) const {
    const auto found = cost_.slow_nodes.find(node);
    return found == cost_.slow_nodes.end() ? 1 : found->second;
  }

  // The share of a node's NICs that stand beside a rank of the job.
  [[nodiscard]] double share_beside_ranks(int node) const {
    const int g = cost_.ranks_per_node;
    const int nics = cost_.nics_per_node;
    int beside = 0;
    for (int nic = 0; nic < nics; ++nic) {
      bool has_rank = false;
      for (const int slot : slots_) {
        if (slot / g != node) continue;
        const int place = slot % g;
        has_rank = has_rank || (nics > g ? nic * g / nics == place : place * nics / g == nic);
      }
      beside += has_rank ? 1 : 0;
    }
    return static_cast<double>(beside) / nics;
  }

  // Returns the switches, or links of a torus, on the way.
  int outside(Way& way, int from, int to) const {
    using models::FabricKind;
    const int g = cost_.ranks_per_node;
    const double nic = cost_.nic.beta.value();
    const double all_nics = nic / cost_.nics_per_node;
    if (cost_.fabric.kind == FabricKind::torus) return torus(way, from / g, to / g, all_nics);
    const bool striped = cost_.nic_use == models::NicUse::striped;
    const int out = striped ? -1 : from % g * cost_.nics_per_node / g;
    const int in = striped ? -1 : to % g * cost_.nics_per_node / g;
    const auto each = [&](int node) {
      return (striped ? all_nics / share_beside_ranks(node) : nic) / share(node);
    };
    way.links[fmt::format("NIC {} of {}, out", out, from / g)] = each(from / g);
    way.links[fmt::format("NIC {} of {}, in", in, to / g)] = each(to / g);
    if (cost_.fabric.kind == FabricKind::rail && out != in) {
      if (cost_.fabric.oversubscription > 1) {
        const double spine =
            nic * cost_.fabric.oversubscription / std::max(used_nodes_, cost_.nodes);
        way.links[fmt::format("rail {} up", out)] = spine;
        way.links[fmt::format("rail {} down", in)] = spine;
      }
      return 3;
    }
    if (cost_.fabric.kind == FabricKind::fat_tree) return tree(way, from / g, to / g, all_nics, 0);
    return 1;
  }

  // Up to the level at which one switch is above both, and down again.
  int tree(Way& way, int from, int to, double uplink, std::size_t level) const {
    if (level == cost_.fabric.levels.size()) return 1;
    const models::FatTreeLevel& here = cost_.fabric.levels[level];
    const int a = from / here.members;
    const int b = to / here.members;
    if (a == b) return 1;
    uplink = uplink * here.oversubscription / here.members;
    if (uplinks_bind(level)) {
      way.links[fmt::format("level {}, switch {}, up", level, a)] = uplink;
      way.links[fmt::format("level {}, switch {}, down", level, b)] = uplink;
    }
    return 2 + tree(way, a, b, uplink, level + 1);
  }
  [[nodiscard]] bool uplinks_bind(std::size_t level) const {
    double ratio = 1;
    for (std::size_t i = 0; i <= level; ++i) ratio *= cost_.fabric.levels[i].oversubscription;
    return ratio > 1;
  }

  int torus(Way& way, int from, int to, double beta) const {
    const std::vector<int>& shape = cost_.fabric.shape;
    std::vector<int> at = coordinates(from);
    const std::vector<int> end = coordinates(to);
    int links = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const int length = shape[axis];
      const int right = (end[axis] + length - at[axis]) % length;
      const bool to_the_right = right <= length - right;
      while (at[axis] != end[axis]) {
        const int here = number(at);
        at[axis] = (at[axis] + (to_the_right ? 1 : length - 1)) % length;
        way.links[fmt::format("grid {}, axis {}, {}", here, axis, to_the_right)] =
            beta / std::min(share(here), share(number(at)));
        ++links;
      }
    }
    return links;
  }
  [[nodiscard]] std::vector<int> coordinates(int node) const {
    std::vector<int> result;
    for (const int length : cost_.fabric.shape) {
      result.push_back(node % length);
      node /= length;
    }
    return result;
  }
  [[nodiscard]] int number(const std::vector<int>& at) const {
    int node = 0;
    for (std::size_t axis = at.size(); axis-- > 0;)
      node = node * cost_.fabric.shape[axis] + at[axis];
    return node;
  }

  simulator::CommunicationCost cost_;
  std::vector<int> slots_;
  int used_nodes_;
};

}  // namespace paceline::test
