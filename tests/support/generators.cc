#include "tests/support/generators.h"

#include <bit>
#include <numeric>
#include <ostream>
#include <utility>

#include "models/collective/algorithms.h"
#include "models/collective/combinators.h"

namespace paceline::models {

void showValue(const Schedule& schedule, std::ostream& out) {
  out << schedule.ranks() << " ranks: " << schedule.description();
}

void showValue(const Groups& groups, std::ostream& out) {
  out << groups.count << " groups, stride " << groups.stride << ", of";
  for (const Progression& p : groups.members)
    out << " {" << p.first << ", " << p.count << ", " << p.stride << '}';
}

}  // namespace paceline::models

namespace paceline::simulator {

void showValue(const CommunicationCost& cost, std::ostream& out) {
  out << "g=" << cost.ranks_per_node << " intra " << cost.intra.alpha << ' ' << cost.intra.beta
      << ", " << cost.nics_per_node << " NICs "
      << (cost.nic_use == models::NicUse::striped ? "striped " : "by affinity ") << cost.nic.alpha
      << ' ' << cost.nic.beta << ", gamma " << cost.gamma << ", " << models::name(cost.intra_kind)
      << " nodes, " << models::described(cost.fabric) << ", hop " << cost.fabric.hop_latency << ", "
      << cost.nodes << " nodes, " << models::name(cost.placement);
  for (const int slot : cost.slots) out << ' ' << slot;
  for (const auto& [node, share] : cost.slow_nodes) out << ", node " << node << " at " << share;
}

}  // namespace paceline::simulator

namespace paceline::test {

int drawn(int low, int high) {
  return *rc::gen::inRange(low, high + 1);
}

double drawn_up_to(double high) {
  constexpr int steps = 1 << 20;
  return drawn(0, 7) == 0 ? 0.0 : high * drawn(1, steps) / steps;
}

int drawn_divisor(int value) {
  std::vector<int> divisors;
  for (int d = 1; d <= value; ++d) {
    if (value % d == 0) divisors.push_back(d);
  }
  return *rc::gen::elementOf(divisors);
}

std::vector<int> drawn_permutation(int size) {
  std::vector<int> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (int i = size - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(drawn(0, i))]);
  return order;
}

models::Groups in_order(const std::vector<int>& order) {
  models::Groups groups;
  for (const int rank : order) groups.members.push_back({.first = rank, .count = 1, .stride = 1});
  return groups;
}

rc::Gen<models::Groups> groups() {
  return rc::gen::exec([] {
    using models::Progression;
    const int kind = drawn(0, 2);
    if (kind == 0) {  // one group of progressions, one behind the other
      models::Groups groups;
      int next = drawn(0, 5);
      for (int i = drawn(1, 4); i > 0; --i) {
        const Progression p{.first = next, .count = drawn(1, 6), .stride = drawn(1, 4)};
        groups.members.push_back(p);
        next = p.first + (p.count - 1) * p.stride + drawn(1, 3);
      }
      return groups;
    }
    const int count = drawn(1, 6);
    if (kind == 1) {  // blocks, perhaps with ranks left out
      const Progression p{.first = drawn(0, 4), .count = drawn(1, 5), .stride = drawn(1, 3)};
      const int stride = (p.count - 1) * p.stride + drawn(1, 3);
      return models::Groups{.members = {p}, .count = count, .stride = stride};
    }
    const int stride = drawn(1, 3);
    const Progression p{
        .first = drawn(0, 4), .count = drawn(1, 5), .stride = stride * count + drawn(0, 2)};
    return models::Groups{.members = {p}, .count = count, .stride = stride};
  });
}

namespace {

// Draws one of the pairs of primitives that together are an all-reduce over p ranks.
models::Schedule drawn_pair(int p) {
  using namespace models;
  const bool power_of_two = std::has_single_bit(static_cast<unsigned>(p));
  switch (drawn(0, power_of_two ? 5 : 4)) {
    case 0:
      return sequence({Schedule(RingReduceScatter{p}), Schedule(RingAllGather{p})});
    case 1:
      return sequence({Schedule(BinomialReduce{p}), Schedule(BinomialBroadcast{p})});
    case 2:
      return sequence({pipelined(drawn(1, 5), Schedule(ChainReduce{p})),
                       pipelined(drawn(1, 5), Schedule(ChainBroadcast{p}))});
    case 3:
      return sequence({Schedule(ServerPush{p, p}), Schedule(ServerPull{p, p})});
    case 4:
      return sequence({Schedule(ServerPush{p, p}), Schedule(RingAllGather{p})});
    default:
      return sequence({Schedule(RecursiveHalving{p}), Schedule(RecursiveDoubling{p})});
  }
}

}  // namespace

models::Schedule drawn_all_reduce(int p, int depth) {
  using namespace models;
  const int kind = drawn(0, depth == 0 ? 3 : 7);
  const auto smaller = [depth](int ranks) { return drawn_all_reduce(ranks, depth - 1); };
  const auto pick = [](Schedule a, Schedule b) { return drawn(0, 1) == 0 ? a : b; };
  switch (kind) {
    case 0:
      return ring_all_reduce(p);
    case 1:
      return drawn_pair(p);
    case 2:
      return halving_doubling_all_reduce(p);
    case 3:
      return hierarchical_all_reduce(p, drawn_divisor(p));
    case 4: {  // scatter inside blocks, all-reduce the parts across them, gather inside
      const int k = drawn_divisor(p);
      return sequence(
          {within(p, blocks(p, k),
                  pick(Schedule(RingReduceScatter{k}), Schedule(ServerPush{k, k}))),
           within(p, across_blocks(p, k), smaller(p / k), Share::own_part),
           within(p, blocks(p, k), pick(Schedule(RingAllGather{k}), Schedule(ServerPull{k, k})))});
    }
    case 5: {  // reduce to masters, all-reduce among them, broadcast
      const int k = drawn_divisor(p);
      return sequence({within(p, blocks(p, k),
                              pick(pipelined(drawn(1, 4), Schedule(ChainReduce{k})),
                                   Schedule(BinomialReduce{k}))),
                       within(p, block_masters(p, k), smaller(p / k)),
                       within(p, blocks(p, k),
                              pick(pipelined(drawn(1, 4), Schedule(ChainBroadcast{k})),
                                   Schedule(BinomialBroadcast{k})))});
    }
    case 6: {  // parts of the bucket, one after the other
      const int of = drawn(2, 3);
      std::vector<Schedule> parts;
      for (int i = 0; i < of; ++i) parts.push_back(on_part(i, of, smaller(p)));
      return sequence(std::move(parts));
    }
    default:  // the ranks in another order
      return within(p, in_order(drawn_permutation(p)), smaller(p));
  }
}

rc::Gen<models::Schedule> all_reduce_schedules(int most_ranks) {
  return rc::gen::exec(
      [most_ranks] { return drawn_all_reduce(drawn(1, most_ranks), drawn(0, 2)); });
}

simulator::CommunicationCost drawn_flat_cost(int g) {
  simulator::CommunicationCost cost;
  cost.ranks_per_node = g;
  cost.intra = {Seconds{drawn_up_to(1e-5)}, SecondsPerByte{1e-12 + drawn_up_to(1e-9)}};
  cost.nic = {Seconds{drawn_up_to(1e-4)}, SecondsPerByte{1e-12 + drawn_up_to(1e-8)}};
  cost.nics_per_node = drawn(1, cost.ranks_per_node);
  cost.nic_use = drawn(0, 1) == 0 ? models::NicUse::striped : models::NicUse::affinity;
  cost.gamma = SecondsPerByte{drawn_up_to(1e-9)};
  return cost;
}

int drawn_ranks_per_node() {
  return *rc::gen::element(1, 2, 3, 4, 6, 8);
}

rc::Gen<simulator::CommunicationCost> flat_costs() {
  return rc::gen::exec([] { return drawn_flat_cost(drawn_ranks_per_node()); });
}

void draw_fabric(simulator::CommunicationCost& cost, int nodes) {
  using models::FabricKind;
  models::Fabric& fabric = cost.fabric;
  fabric.kind = *rc::gen::element(FabricKind::flat, FabricKind::fat_tree, FabricKind::torus,
                                  FabricKind::rail);
  const auto ratio = [] { return drawn(0, 2) == 0 ? 1.0 : 1 + drawn_up_to(7); };
  if (fabric.kind == FabricKind::fat_tree) {
    for (int level = drawn(1, 2); level > 0; --level)
      fabric.levels.push_back({*rc::gen::element(1, 2, 2, 3, 4, 5, 8), ratio()});
  } else if (fabric.kind == FabricKind::torus) {
    const int held = nodes + (drawn(0, 3) == 0 ? drawn(0, 5) : 0);
    const int x = drawn_divisor(held);
    fabric.shape = {x, held / x};
    if (drawn(0, 1) == 0) {
      const int y = drawn_divisor(held / x);
      fabric.shape = {x, y, held / x / y};
    }
    cost.nic_use = models::NicUse::striped;
  } else if (fabric.kind == FabricKind::rail) {
    fabric.oversubscription = ratio();
    cost.nic_use = models::NicUse::affinity;
    if (drawn(0, 1) == 0) cost.nodes = nodes + drawn(0, 8);
  }
  if (fabric.kind != FabricKind::flat) fabric.hop_latency = Seconds{drawn_up_to(1e-5)};
}

simulator::CommunicationCost drawn_cost(int g, int nodes, bool alike) {
  simulator::CommunicationCost cost = drawn_flat_cost(g);
  cost.intra_kind = *rc::gen::element(models::IntraKind::switched, models::IntraKind::ring,
                                      models::IntraKind::all_to_all);
  if (cost.intra_kind == models::IntraKind::switched && drawn(0, 2) == 0) {
    cost.host = {.staged = drawn(0, 1) == 1,
                 .sockets = drawn(1, g),
                 .crossing = SecondsPerByte{drawn_up_to(1e-9)},
                 .memory = SecondsPerByte{drawn_up_to(1e-9)},
                 .switches = drawn(0, g),
                 .uplink = SecondsPerByte{drawn_up_to(1e-9)}};
  }
  draw_fabric(cost, nodes);
  if (alike) return cost;
  const int placement = drawn(0, 2);
  if (placement == 1) cost.placement = models::Placement::round_robin;
  if (placement == 2) cost.slots = drawn_permutation(g * nodes);
  for (int slow = drawn(0, 2); slow > 0; --slow)
    cost.slow_nodes[drawn(0, nodes - 1)] = 1 - drawn_up_to(0.9);
  return cost;
}

rc::Gen<simulator::CommunicationCost> communication_costs(int ranks) {
  return rc::gen::exec([ranks] {
    const int g = drawn_ranks_per_node();
    return drawn_cost(g, (ranks + g - 1) / g, drawn(0, 2) == 0);
  });
}

}  // namespace paceline::test
