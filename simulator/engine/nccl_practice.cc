// Tests: tests/simulator/nccl_practice_test.cc.
#include "simulator/engine/nccl_practice.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "models/base/to_size.h"
#include "models/collective/algorithms.h"
#include "simulator/engine/collective_timer.h"
#include "simulator/engine/nccl_routes.h"

namespace paceline::simulator {
namespace {

constexpr double giga = 1e9;
constexpr double micro = 1e-6;

// The bus bandwidth of a byte more of a schedule over the ranks of one node, by the engine that a bucket is
// timed by. `buckets` are those that nccl-tests' size counts once.
BytesPerSecond bandwidth_on_a_node(CommunicationCost cost, const models::PlannedSchedule& schedule,
                                   models::Collective collective, double buckets = 1) {
  cost.slots.clear();
  cost.placement = models::Placement::node_major;
  cost.transport.reset();
  cost.gamma = SecondsPerByte{0};
  CollectiveTimer timer(cost, EngineKind::automatic);
  constexpr Bytes large{268435456};
  const Seconds time =
      timer.time(schedule, 2 * buckets * large) - timer.time(schedule, buckets * large);
  return bus_bandwidth(collective, schedule.options.ranks, large, time);
}

BytesPerSecond ring_bus_bandwidth(const CommunicationCost& cost, int ranks) {
  return bandwidth_on_a_node(cost, {"ring", {.ranks = ranks}, models::ring_all_reduce(ranks)},
                             models::Collective::all_reduce);
}

// The time of a byte of a rank's buffer in sends and receives.
SecondsPerByte exchange_time(const CommunicationCost& cost, int ranks, int on_a_node,
                             models::Collective collective) {
  const SecondsPerByte between = nccl_routes(cost, ranks, collective).exchange;
  if (on_a_node == 1) return between;
  const bool is_all_to_all = collective == models::Collective::all_to_all;
  const BytesPerSecond port =
      bandwidth_on_a_node(cost,
                          {std::string(name(collective)),
                           {.ranks = on_a_node},
                           is_all_to_all ? models::pairwise_all_to_all(on_a_node)
                                         : models::neighbour_exchange(on_a_node)},
                          collective, on_a_node);
  const double sent = is_all_to_all ? (on_a_node - 1.0) / ranks : 1;  // of the buffer
  return std::max(between, sent / port);
}

// The bandwidth of a node's NICs, that of the slowest node.
BytesPerSecond network_bandwidth(const CommunicationCost& cost, int nics) {
  double share = 1;
  for (const auto& [node, left] : cost.slow_nodes) share = std::min(share, left);
  return share * nics / cost.nic.beta;
}

// The time of one step of a protocol over EFA or TCP. Other networks have none: NCCL's tables have their
// steps.
std::optional<Seconds> library_step(const models::Cluster& cluster, NcclProtocol protocol,
                                    Bound bound) {
  const bool is_efa = cluster.nic.is(models::LinkKind::efa);
  const bool is_tcp = cluster.has_nic() && cluster.nic.protocol == models::Protocol::tcp;
  if (!is_efa && !is_tcp) return std::nullopt;
  const Seconds step = cost_at(cluster.nic.latency, bound);
  if (is_tcp) return std::max(step, cost_at(nccl_tcp_step(), bound));
  return step + (protocol == NcclProtocol::simple ? nccl_efa_completion : Seconds{0});
}

// The cluster without what its network's plugin tells NCCL, which decides what NCCL chooses, and not how long
// that takes.
models::Cluster untold(models::Cluster cluster) {
  cluster.nic.told_latency = Seconds{0};
  return cluster;
}

}  // namespace

const Figure<double>& nccl_latency_factor() {
  static const Figure<double> factor{
      1.6, 1.0, 2.6, Provenance::published,
      "small all-reduces over NCCL's own model: 1.3 to 2.2 on a DGX A100 (nccl-tests#123), 2.6 and "
      "2.0 on PCIe (NVIDIA/nccl#1439, #1530), 1.6, 1.2 and 1.0 over InfiniBand (nccl-tests#150, "
      "NVIDIA/nccl#1291, #757)"};
  return factor;
}

const Figure<double>& nccl_nvls_latency_factor() {
  static const Figure<double> factor{1.0, 0.87, 1.6, Provenance::published,
                                     "small all-reduces by NVLSTree of 16 H20 on two nodes take 46 "
                                     "to 48 us, where NCCL's model has "
                                     "53 (NVIDIA/nccl#1244); up to 1.6 as rings and trees take"};
  return factor;
}

const Figure<Seconds>& nccl_tcp_step() {
  static const Figure<Seconds> step{
      Seconds{40e-6}, Seconds{20e-6}, Seconds{200e-6}, Provenance::assumed,
      "a broadcast of 8 B between 2 ranks over TCP takes 38 to 46 us (nccl-tests#82); to 200 us "
      "where 16 ranks share a NIC (gloo#158)"};
  return step;
}

NcclTables with_practical_latencies(NcclTables tables, const models::Cluster& cluster, Bound bound,
                                    const Pace& pace) {
  const auto slow_down = [](NcclTables::Pair& pair, double factor, double small) {
    for (NcclTables::Row& row : pair) {
      const double host = (small - 1) * row[to_size(NcclProtocol::ll)];
      for (double& latency : row) latency = factor * std::max(0.0, latency + host);
    }
  };
  const double node = cost_at(nccl_latency_factor(), node_bound(pace, bound));
  for (NcclTables::Pair* const pair :
       {&tables.base_latency_us, &tables.nvlink_latency_us, &tables.pci_latency_us})
    slow_down(*pair, node, pace.latency);
  if (tables.pat) {
    tables.pat->base_us *= node * pace.latency;
    tables.pat->rank_us *= node;
  }
  auto& rules = tables.latency;
  rules.net_overhead_intel_us *= node * pace.latency;
  rules.net_overhead_amd_us *= node * pace.latency;
  rules.net_overhead_simple =
      std::max(0.0, rules.net_overhead_simple + pace.latency - 1) / pace.latency;

  const Bound network = network_bound(pace, bound);
  const double network_pace = pace.between_nodes ? pace.latency : 1;
  slow_down(tables.network_latency_us, cost_at(nccl_latency_factor(), network), network_pace);
  for (NcclTables::Row& row : tables.network_latency_us) {
    for (const NcclProtocol protocol : nccl_protocols) {
      double& latency_us = row[to_size(protocol)];
      if (const auto step = library_step(cluster, protocol, network))
        latency_us = std::max(latency_us, network_pace * step->value() / micro);
    }
  }
  return tables;
}

NcclPractice::NcclPractice(const NcclTables& tables, const models::Cluster& cluster, int ranks,
                           const CommunicationCost& cost, Bound bound, const Pace& pace,
                           models::Collective collective)
    : model_(tables, cluster, ranks, collective),
      slowed_(with_practical_latencies(tables, cluster, bound, pace), untold(cluster), ranks,
              collective) {
  if (const auto pat = nccl_pat(model_)) pat_ = {.own = *pat, .slowed = *nccl_pat(slowed_)};
  if (is_sends_and_receives(collective)) exchange_ = SecondsPerByte{0};
  // The hosts of a platform have links of their own, and no node around them.
  if (ranks == 1 || cluster.platform != nullptr) return;
  const int on_a_node = model_.most_on_a_node();
  if (is_sends_and_receives(collective)) {
    exchange_ = exchange_time(cost, ranks, on_a_node, collective);
    return;
  }
  const NcclRoutes routes = nccl_routes(cost, ranks, collective);
  least_[to_size(NcclAlgorithm::ring)] = routes.ring;
  least_[to_size(NcclAlgorithm::tree)] = routes.tree;
  std::optional<BytesPerSecond> node;
  if (on_a_node > 1) {
    const bool ends_at_nics = model_.nodes() > 1 && model_.on_nvlink();
    node =
        ring_bus_bandwidth(cost, on_a_node) * (ends_at_nics ? on_a_node / (on_a_node - 1.0) : 1.0);
  }
  const int nics = model_.nics_on_a_node();
  for (const NcclAlgorithm algorithm : nccl_algorithms) {
    const NcclGraph& graph = model_.graph(algorithm);
    double eta = algorithm == NcclAlgorithm::tree ? 1 : std::numeric_limits<double>::infinity();
    const auto limit = [&](BytesPerSecond links, double channel_gbps) {
      eta = std::min(eta, links.value() / (giga * channel_gbps * graph.channels));
    };
    if (node) limit(*node, graph.intra_gbps);
    if (model_.nodes() > 1) limit(network_bandwidth(cost, nics), graph.inter_gbps);
    eta_[to_size(algorithm)] = eta;
  }
  const std::optional<NcclNvls> nvls = nccl_nvls(model_, cluster);
  if (!nvls || !node) return;
  const Seconds host = slowed_.latency(NcclAlgorithm::tree, NcclProtocol::ll) -
                       model_.latency(NcclAlgorithm::tree, NcclProtocol::ll);
  const double factor = cost_at(nccl_nvls_latency_factor(), node_bound(pace, bound));
  const Seconds step = library_step(cluster, NcclProtocol::simple, network_bound(pace, bound))
                           .value_or(nccl_nvls_network_step);
  const Seconds beyond = nvls->network_steps * std::max(Seconds{0}, step - nccl_nvls_network_step);
  switched_ = {.own = *nvls,
               .latency = std::max(Seconds{0}, factor * nccl_nvls(slowed_, cluster)->latency +
                                                   beyond + (pace.is_measured ? host : Seconds{0})),
               .intra_share = ring_bus_bandwidth(cost, on_a_node).value() / giga / nvls->port_gbps};
  if (nvls->network_gbps > 0)
    switched_->inter_share =
        network_bandwidth(cost, nics).value() / giga / (nvls->channels * nvls->network_gbps);
}

double NcclPractice::tree_correction(Bytes bytes) const {
  constexpr double first_size = 64;
  const std::vector<double>& correction =
      model_.tables().tree_correction[to_size(NcclProtocol::simple)];
  if (bytes.value() < first_size) return correction.front();
  const auto size = to_size(std::ilogb(bytes.value() / first_size));
  return size < correction.size() ? correction[size] : 1;
}

NcclTime NcclPractice::parts(Bytes bytes, std::optional<NcclAlgorithm> only) const {
  if (exchange_ && ranks() > 1) {
    const bool is_all_to_all = model_.collective() == models::Collective::all_to_all;
    const Bytes message = is_all_to_all ? bytes / ranks() : bytes;
    const NcclProtocol protocol =
        message <= nccl_most_sent_by_ll ? NcclProtocol::ll : NcclProtocol::simple;
    return {slowed_.message_latency(protocol), bytes * *exchange_};
  }
  const std::optional<NcclChoice> choice = model_.choice(bytes, only);
  if (!choice) return {};
  if (!only && pat_ && pat_->own.is_chosen(model_, bytes)) {
    const auto tree = to_size(NcclAlgorithm::tree);
    return {pat_->slowed.latency, std::max(bytes / pat_->own.bandwidth / eta_[tree],
                                           bytes * least_[to_size(NcclAlgorithm::ring)])};
  }
  if (!only && switched_ && *expected_of_switches(bytes) < choice->time)
    return parts_in_switches(bytes);
  const NcclTime time = *slowed_.parts(choice->algorithm, choice->protocol, bytes);
  return {time.latency, transfer(choice->algorithm, time.transfer, bytes)};
}

Seconds NcclPractice::transfer(NcclAlgorithm algorithm, Seconds own, Bytes bytes) const {
  const auto index = to_size(algorithm);
  return std::max(own / eta_[index], bytes * least_[index]);
}

NcclTime NcclPractice::parts_in_switches(Bytes bytes) const {
  const Seconds transfer =
      switched_->own.transfer(ranks(), bytes, switched_->intra_share, switched_->inter_share);
  return {switched_->latency, std::max(transfer / tree_correction(bytes),
                                       bytes * least_[to_size(NcclAlgorithm::tree)])};
}

std::optional<Seconds> NcclPractice::time(NcclAlgorithm algorithm, NcclProtocol protocol,
                                          Bytes bytes) const {
  const std::optional<NcclTime> time = slowed_.parts(algorithm, protocol, bytes);
  if (!time) return std::nullopt;
  return time->latency + transfer(algorithm, time->transfer, bytes);
}

std::optional<Seconds> NcclPractice::expected_of_switches(Bytes bytes) const {
  if (!switched_) return std::nullopt;
  return switched_->own.latency + switched_->own.transfer(ranks(), bytes);
}

std::optional<Seconds> NcclPractice::time_in_switches(Bytes bytes) const {
  if (!switched_) return std::nullopt;
  const NcclTime time = parts_in_switches(bytes);
  return time.latency + time.transfer;
}

std::optional<std::pair<Seconds, Seconds>> NcclPractice::latency_in_switches() const {
  if (!switched_) return std::nullopt;
  return std::pair(switched_->latency, switched_->own.latency);
}

Seconds NcclPractice::time(Bytes bytes, std::optional<NcclAlgorithm> only) const {
  const NcclTime time = parts(bytes, only);
  return time.latency + time.transfer;
}

double NcclPractice::eta(NcclAlgorithm algorithm) const {
  return eta_[to_size(algorithm)];
}

std::string described(const NcclPractice& practice) {
  if (is_sends_and_receives(practice.model().collective()))
    return fmt::format(
        "sends and receives of NCCL {}, at the links' rates and at latencies as measured",
        practice.model().tables().version);
  return fmt::format(
      "NCCL {}'s own choice (tuning.cc), at the links' rates and at latencies as measured",
      practice.model().tables().version);
}

}  // namespace paceline::simulator
