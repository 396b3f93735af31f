// Tests: tests/simulator/nccl_routes_test.cc.
#include "simulator/engine/nccl_routes.h"

#include <algorithm>

#include "models/base/to_size.h"
#include "models/cluster/placement.h"
#include "models/collective/algorithms.h"
#include "models/collective/enumerate.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {
namespace {

using Nodes = std::vector<std::vector<int>>;

// Adds up what links carry.
class Load {
 public:
  Load(const Routes& routes, const Nodes& nodes)
      : routes_(routes), nodes_(nodes), carried_(to_size(routes.links()), 0.0) {
    for (const std::vector<int>& ranks : nodes) channels_ = std::max(channels_, ranks.size());
  }

  // This part of each byte goes from one node to another.
  void add(std::size_t from, std::size_t to, double part) {
    const std::vector<int>& senders = nodes_[from];
    const std::vector<int>& receivers = nodes_[to];
    for (std::size_t channel = 0; channel < channels_; ++channel) {
      routes_.path(senders[channel % senders.size()], receivers[channel % receivers.size()], path_);
      for (const int link : path_) {
        double& carried = carried_[to_size(link)];
        const double share = part / static_cast<double>(channels_);
        carried = routes_.is_shared(link) ? carried + share : std::max(carried, share);
      }
    }
  }

  // Each byte goes from one rank to another.
  void add_message(int from, int to) {
    routes_.path(from, to, path_);
    for (const int link : path_) {
      double& carried = carried_[to_size(link)];
      carried = routes_.is_shared(link) ? carried + 1 : 1;
    }
  }

  [[nodiscard]] SecondsPerByte busiest() const {
    double most_s = 0;
    for (int link = 0; link < routes_.links(); ++link) {
      const double carried = carried_[to_size(link)];
      if (carried > 0) most_s = std::max(most_s, carried * routes_.beta_s(link));
    }
    return SecondsPerByte{most_s};
  }

 private:
  const Routes& routes_;
  const Nodes& nodes_;
  std::vector<double> carried_;
  std::vector<int> path_;
  std::size_t channels_ = 1;
};

}  // namespace

NcclRoutes nccl_routes(const CommunicationCost& cost, int ranks, models::Collective collective) {
  using models::Collective;
  if (cost.platform != nullptr) return {};
  const Nodes nodes = models::ranks_by_node(
      models::slots_of_ranks(cost.slots, cost.placement, cost.ranks_per_node, ranks),
      cost.ranks_per_node);
  if (nodes.size() == 1) return {};
  const Routes routes(cost, ranks);

  if (collective == Collective::all_to_all) {
    Load exchange(routes, nodes);
    for (std::size_t from = 0; from < nodes.size(); ++from) {
      for (std::size_t to = 0; to < nodes.size(); ++to)
        if (from != to)
          exchange.add(from, to,
                       static_cast<double>(nodes[from].size() * nodes[to].size()) / ranks);
    }
    return {.exchange = exchange.busiest()};
  }
  if (collective == Collective::neighbour_exchange) {
    Load exchange(routes, nodes);
    for (int rank = 0; rank < ranks; ++rank) exchange.add_message(rank, (rank + 1) % ranks);
    return {.exchange = exchange.busiest()};
  }
  Load ring(routes, nodes);
  const double to_next = bus_factor(collective, ranks);
  for (std::size_t node = 0; node < nodes.size(); ++node)
    ring.add(node, (node + 1) % nodes.size(), to_next);
  if (collective != Collective::all_reduce) return {.ring = ring.busiest()};

  Load tree(routes, nodes);
  const models::Schedule trees =
      models::double_binary_tree_all_reduce(static_cast<int>(nodes.size()), 1);
  for (int step = 0; step < trees.steps(); ++step)
    models::for_each_transfer(trees, step, models::Span<double>{0, 1}, [&](const auto& transfer) {
      tree.add(to_size(transfer.from), to_size(transfer.to), transfer.span.size);
    });
  return {.ring = ring.busiest(), .tree = tree.busiest()};
}

std::optional<LibraryCurve> curve_on_routes(const models::Profile* profile, models::Library library,
                                            LibraryJob job, Bound bound,
                                            const CommunicationCost& cost) {
  auto curve = LibraryCurve::find(profile, library, job, bound);
  if (!curve || !job.has_own_routes || library != models::Library::nccl) return curve;
  job.least_on_routes = nccl_routes(cost, job.ranks, job.collective).least();
  return LibraryCurve::find(profile, library, job, bound);
}

}  // namespace paceline::simulator
