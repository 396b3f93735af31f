// Tests: tests/simulator/routes_test.cc.
#include "simulator/engine/routes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <tuple>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/cluster/placement.h"

namespace paceline::simulator {
namespace {

using models::FabricKind;
using models::IntraKind;

constexpr std::int64_t most_links = 1 << 26;

int divided_up(int amount, int by) {
  return (amount - 1) / by + 1;
}

// Steps from `from` to `to` on a ring of `length`, negative if backward is shorter.
int ring_offset(int from, int to, int length) {
  const int forward = (to - from + length) % length;
  return 2 * forward <= length ? forward : forward - length;
}

}  // namespace

Routes::Routes(const CommunicationCost& cost, int ranks)
    : ranks_(ranks),
      per_node_(cost.ranks_per_node),
      nics_(cost.nic_use == models::NicUse::striped ? 1 : cost.nics_per_node),
      nodes_(divided_up(ranks, cost.ranks_per_node)),
      intra_(cost.intra_kind),
      fabric_(cost.fabric),
      intra_alpha_s_(cost.intra.alpha.value()),
      nic_alpha_s_(cost.nic.alpha.value()),
      platform_(cost.platform) {
  place(cost);
  if (platform_ != nullptr) {
    links_ = static_cast<int>(platform_->links.size());
    return;
  }
  const double lane_beta = cost.intra.beta.value();
  const int slots = nodes_ * per_node_;
  if (intra_ == IntraKind::switched) {
    port_ = add_family("port", slots, 2, 1, lane_beta);
    if (cost.host) {
      host_ = *cost.host;
      add_host();
    }
  } else if (intra_ == IntraKind::ring) {
    lane_ = add_family("lane", slots, 2, 1, lane_beta);
  } else {
    lane_ = add_family("lane", slots, per_node_, 1, lane_beta);
  }
  const double striped = cost.nic_use == models::NicUse::striped ? cost.nics_per_node : 1;
  const double nic_beta = cost.nic.beta.value() / striped;
  unit_ = per_node_;
  if (fabric_.kind == FabricKind::torus) {
    add_grid(cost);
  } else {
    nic_ = add_family("NIC", nodes_, 2 * nics_, per_node_, nic_beta);
  }
  if (fabric_.kind == FabricKind::fat_tree) add_tree(cost);
  if (fabric_.kind == FabricKind::rail && nics_ > 1 && fabric_.oversubscription > 1)
    spine_ = add_family("spine", 1, 2 * nics_, 0,
                        nic_beta * fabric_.oversubscription / std::max(nodes_, cost.nodes));
  share_nics(cost);
  if (!slots_.empty() || !cost.slow_nodes.empty()) unit_ = 0;
}

void Routes::share_nics(const CommunicationCost& cost) {
  const bool all_nics = cost.nic_use == models::NicUse::affinity || cost.nics_per_node == 1 ||
                        fabric_.kind == FabricKind::torus ||
                        (slots_.empty() && ranks_ % per_node_ == 0);
  if (all_nics && cost.slow_nodes.empty()) return;
  nic_shares_.assign(to_size(nodes_), 1.0);
  for (const auto& [node, share] : cost.slow_nodes)
    if (node < nodes_) nic_shares_[to_size(node)] = share;
  if (all_nics) return;
  const std::vector<int> slots =
      slots_.empty() ? models::slots_of_ranks({}, models::Placement::node_major, per_node_, ranks_)
                     : slots_;
  for (const std::vector<int>& node : models::slots_by_node(slots, per_node_))
    nic_shares_[to_size(node.front() / per_node_)] *=
        models::nics_beside(node, cost.nics_per_node, per_node_) /
        static_cast<double>(cost.nics_per_node);
}

void Routes::place(const CommunicationCost& cost) {
  const bool is_in_order = cost.slots.empty() && (cost.placement == models::Placement::node_major ||
                                                  nodes_ == 1 || per_node_ == 1);
  if (!is_in_order) slots_ = models::slots_of_ranks(cost.slots, cost.placement, per_node_, ranks_);
  const int last = slots_.empty() ? ranks_ - 1 : *std::max_element(slots_.begin(), slots_.end());
  nodes_ = last / per_node_ + 1;
  if (platform_ != nullptr && to_size(last) >= platform_->hosts.size()) {
    throw InputError(
        fmt::format("{} slots on a platform of {} hosts", last + 1, platform_->hosts.size()),
        "choose at most one rank for each host");
  }
}

int Routes::add_family(const char* name, int owners, int per_owner, int ranks_per_owner,
                       double beta_s) {
  const std::int64_t links = links_ + std::int64_t{owners} * per_owner;
  if (links > most_links) {
    throw InputError(
        fmt::format("{} ranks on nodes of {} have {} links or more", ranks_, per_node_, links),
        fmt::format("choose a cluster of at most {} links", most_links));
  }
  families_.push_back({name, links_, owners, per_owner, ranks_per_owner, beta_s});
  links_ += owners * per_owner;
  return static_cast<int>(families_.size()) - 1;
}

void Routes::add_host() {
  if (host_.switches > 0 && host_.uplink.value() > 0)
    uplink_ = add_family("uplink", nodes_, 2 * host_.switches, per_node_, host_.uplink.value());
  if (host_.sockets > 1 && host_.crossing.value() > 0)
    crossing_ =
        add_family("crossing", nodes_, 2 * host_.sockets, per_node_, host_.crossing.value());
  if (host_.staged && host_.memory.value() > 0)
    memory_ = add_family("memory", nodes_, 1, per_node_, host_.memory.value());
}

void Routes::add_tree(const CommunicationCost& cost) {
  int nodes = 1;
  double ratio = 1;
  for (const models::FatTreeLevel& level : fabric_.levels) {
    nodes *= level.members;
    ratio *= level.oversubscription;
    if (nodes >= nodes_) break;  // one switch joins all ranks
    const double beta = cost.nic.beta.value() / cost.nics_per_node * ratio / nodes;
    int family = -1;
    // Whether two nodes are below one switch says how many hops lie between them.
    if (ratio > 1 || fabric_.hop_latency > Seconds{0}) unit_ = nodes * per_node_;
    if (ratio > 1) {
      const char* name = tree_.empty() ? "leaf" : tree_.size() == 1 ? "pod" : "switch";
      family = add_family(name, divided_up(nodes_, nodes), 2, nodes * per_node_, beta);
    }
    tree_.push_back({family, nodes});
  }
}

void Routes::add_grid(const CommunicationCost& cost) {
  const int nodes =
      std::accumulate(fabric_.shape.begin(), fabric_.shape.end(), 1, std::multiplies<>());
  if (nodes_ > nodes) {
    throw InputError(fmt::format("{} nodes in a torus of {}", nodes_, nodes),
                     fmt::format("choose at most {} ranks", nodes * per_node_));
  }
  const int row = nodes / fabric_.shape.back();
  unit_ = nodes_ == nodes ? row * per_node_ : 0;
  needs_translation_ = true;
  nodes_ = nodes;
  grid_ = add_family("grid", nodes, 2 * static_cast<int>(fabric_.shape.size()), per_node_,
                     cost.nic.beta.value() / cost.nics_per_node);
}

const Routes::Family& Routes::family_of(int link) const {
  const auto after = std::upper_bound(families_.begin(), families_.end(), link,
                                      [](int l, const Family& f) { return l < f.first; });
  return *(after - 1);
}

double Routes::beta_s(int link) const {
  if (platform_ != nullptr) return 1.0 / platform_->links[to_size(link)].bandwidth.value();
  return family_of(link).beta_s / share_of(link);
}

// The share of its family's bandwidth that the link has.
double Routes::share_of(int link) const {
  if (nic_shares_.empty()) return 1;
  const Family& family = family_of(link);
  const auto index = &family - families_.data();
  if (index != nic_ && index != grid_) return 1;
  const int node = (link - family.first) / family.per_owner;
  const double share = nic_shares_[to_size(node)];
  if (index == nic_) return share;
  const int other = grid_neighbour(node, (link - family.first) % family.per_owner);
  return std::min(share, nic_shares_[to_size(other)]);
}

// A link that has its family's bandwidth has the family for a rate; else it is its own.
int Routes::rate(int link) const {
  const auto families = static_cast<int>(families_.size());
  if (platform_ != nullptr || share_of(link) != 1) return families + link;
  return static_cast<int>(&family_of(link) - families_.data());
}

double Routes::beta_s_of_rate(int rate) const {
  const auto families = static_cast<int>(families_.size());
  return rate < families ? families_[to_size(rate)].beta_s : beta_s(rate - families);
}

bool Routes::is_alike(const Routes& other) const {
  const auto alike_families = [](const Family& a, const Family& b) {
    return a.first == b.first && a.owners == b.owners && a.per_owner == b.per_owner &&
           a.ranks_per_owner == b.ranks_per_owner && (a.beta_s > 0) == (b.beta_s > 0);
  };
  const auto alike_levels = [](const TreeLevel& a, const TreeLevel& b) {
    return a.family == b.family && a.nodes == b.nodes;
  };
  const auto kinds = [](const Routes& r) {
    return std::tuple(r.ranks_, r.links_, r.per_node_, r.nics_, r.nodes_, r.unit_,
                      r.needs_translation_, r.intra_, r.fabric_.kind, r.port_, r.uplink_,
                      r.crossing_, r.memory_, r.lane_, r.nic_, r.spine_, r.grid_, r.host_.staged,
                      r.host_.sockets, r.host_.switches, r.fabric_.hop_latency > Seconds{0},
                      r.platform_);
  };
  return kinds(*this) == kinds(other) &&
         std::ranges::equal(families_, other.families_, alike_families) &&
         std::ranges::equal(tree_, other.tree_, alike_levels) &&
         fabric_.shape == other.fabric_.shape && slots_ == other.slots_ &&
         nic_shares_ == other.nic_shares_;
}

// Across link `index` of a node of the torus.
int Routes::grid_neighbour(int node, int index) const {
  int stride = 1;
  for (int axis = 0; axis < index / 2; ++axis) stride *= fabric_.shape[to_size(axis)];
  const int length = fabric_.shape[to_size(index / 2)];
  const int at = node / stride % length;
  const int next = (at + (index % 2 == 0 ? 1 : length - 1)) % length;
  return node + (next - at) * stride;
}

std::string Routes::link_name(int link) const {
  if (platform_ != nullptr) return platform_->links[to_size(link)].name;
  const Family& family = family_of(link);
  return fmt::format("{}-{}-{}", family.name, (link - family.first) / family.per_owner,
                     (link - family.first) % family.per_owner);
}

Routes::Distance Routes::way(int from, int to, std::vector<int>& path) const {
  path.clear();
  if (platform_ != nullptr) {
    const auto route = platform_->route(slot_of(from), slot_of(to));
    path.assign(route.begin(), route.end());
    double alpha_s = 0;
    for (const int link : route) alpha_s += platform_->links[to_size(link)].latency.value();
    return {.hops = 0, .alpha_s = alpha_s};
  }
  const int from_slot = slot_of(from);
  const int to_slot = slot_of(to);
  const int from_node = from_slot / per_node_;
  const int to_node = to_slot / per_node_;
  if (from_node == to_node) {
    path_inside(from_node, from_slot % per_node_, to_slot % per_node_, path);
    return {};
  }
  if (port_ >= 0) path.push_back(id(port_, from_slot, 0));
  int hops = 1;
  if (grid_ >= 0) {
    hops = path_through_grid(from_node, to_node, path);
  } else {
    const int out = nics_ == 1 ? 0 : nic_of(from_slot % per_node_);
    const int in = nics_ == 1 ? 0 : nic_of(to_slot % per_node_);
    path.push_back(id(nic_, from_node, 2 * out));
    if (!tree_.empty()) hops = path_through_tree(from_node, to_node, path);
    if (fabric_.kind == FabricKind::rail && out != in) {
      hops = 3;
      if (spine_ >= 0) {
        path.push_back(id(spine_, 0, 2 * out));
        path.push_back(id(spine_, 0, 2 * in + 1));
      }
    }
    path.push_back(id(nic_, to_node, 2 * in + 1));
  }
  if (port_ >= 0) path.push_back(id(port_, to_slot, 1));
  return {.hops = fabric_.hop_latency > Seconds{0} ? hops : 1};
}

void Routes::path_inside(int node, int from, int to, std::vector<int>& path) const {
  const int first = node * per_node_;
  if (intra_ == IntraKind::switched) {
    const auto part = [this](int place, int parts) { return place * parts / per_node_; };
    const bool passes_uplinks =
        uplink_ >= 0 && (host_.staged || part(from, host_.switches) != part(to, host_.switches));
    path.push_back(id(port_, first + from, 0));
    if (passes_uplinks) path.push_back(id(uplink_, node, 2 * part(from, host_.switches)));
    if (crossing_ >= 0 && part(from, host_.sockets) != part(to, host_.sockets)) {
      path.push_back(id(crossing_, node, 2 * part(from, host_.sockets)));
      path.push_back(id(crossing_, node, 2 * part(to, host_.sockets) + 1));
    }
    if (memory_ >= 0) path.push_back(id(memory_, node, 0));
    if (passes_uplinks) path.push_back(id(uplink_, node, 2 * part(to, host_.switches) + 1));
    path.push_back(id(port_, first + to, 1));
  } else if (intra_ == IntraKind::all_to_all) {
    path.push_back(id(lane_, first + from, to));
  } else {
    const int offset = ring_offset(from, to, per_node_);
    const int way = offset > 0 ? 1 : -1;
    for (int place = from; place != to; place = (place + way + per_node_) % per_node_)
      path.push_back(id(lane_, first + place, way > 0 ? 0 : 1));
  }
}

// Returns the switches on the way.
int Routes::path_through_tree(int from_node, int to_node, std::vector<int>& path) const {
  std::size_t common = 0;
  while (common < tree_.size() && from_node / tree_[common].nodes != to_node / tree_[common].nodes)
    ++common;
  for (std::size_t level = 0; level < common; ++level) {
    const TreeLevel& t = tree_[level];
    if (t.family >= 0) path.push_back(id(t.family, from_node / t.nodes, 0));
  }
  for (std::size_t level = common; level-- > 0;) {
    const TreeLevel& t = tree_[level];
    if (t.family >= 0) path.push_back(id(t.family, to_node / t.nodes, 1));
  }
  return 2 * static_cast<int>(common) + 1;
}

// Returns the number of links.
int Routes::path_through_grid(int from_node, int to_node, std::vector<int>& path) const {
  int hops = 0;
  int stride = 1;
  int node = from_node;
  for (std::size_t axis = 0; axis < fabric_.shape.size(); ++axis) {
    const int length = fabric_.shape[axis];
    int at = node / stride % length;
    const int offset = ring_offset(at, to_node / stride % length, length);
    const int way = offset > 0 ? 1 : -1;
    for (int step = 0; step < std::abs(offset); ++step) {
      path.push_back(id(grid_, node, 2 * static_cast<int>(axis) + (way > 0 ? 0 : 1)));
      const int next = (at + way + length) % length;
      node += (next - at) * stride;
      at = next;
      ++hops;
    }
    stride *= length;
  }
  return hops;
}

int Routes::standing_for(int link, const Positions& positions) const {
  if (!positions.is_collapsed()) return link;
  const Family& family = family_of(link);
  if (family.ranks_per_owner == 0) return link;
  const int owner = (link - family.first) / family.per_owner;
  if (owner * family.ranks_per_owner >= positions.whole()) return link;
  const int index = (link - family.first) % family.per_owner;
  return family.first + owner % (positions.modulus() / family.ranks_per_owner) * family.per_owner +
         index;
}

int Routes::shift(int link, const Positions& positions) const {
  if (!positions.is_collapsed()) return 0;
  return (link - standing_for(link, positions)) / family_of(link).per_owner *
         family_of(link).ranks_per_owner;
}

int Routes::alike(int link, const Positions& positions) const {
  if (!positions.is_collapsed()) return 1;
  const Family& family = family_of(link);
  if (family.ranks_per_owner == 0) return 1;
  const int owner = (link - family.first) / family.per_owner;
  if (owner * family.ranks_per_owner >= positions.whole()) return 1;
  return positions.whole() / positions.modulus();
}

}  // namespace paceline::simulator
