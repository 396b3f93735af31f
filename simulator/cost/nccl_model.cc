// Tests: tests/simulator/nccl_model_test.cc.
//
// Implementation. NCCL computes in float and we in double: times differ in the seventh digit.
#include "simulator/cost/nccl_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/to_size.h"
#include "models/cluster/placement.h"

namespace paceline::simulator {
namespace {

constexpr int ampere = 80;
constexpr int hopper = 90;
constexpr int blackwell = 100;
constexpr double giga = 1e9;
constexpr double micro = 1e-6;

using models::Collective;

// Whether one rank has what all others get, or gets what all others have.
bool is_rooted(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce;
}

int ring_steps(Collective collective, int ranks) {
  return collective == Collective::all_reduce ? 2 * (ranks - 1)
         : is_rooted(collective)              ? ranks
                                              : ranks - 1;
}

NcclGeneration generation(int capability) {
  return capability >= blackwell ? NcclGeneration::blackwell
         : capability >= hopper  ? NcclGeneration::hopper
         : capability >= ampere  ? NcclGeneration::ampere
                                 : NcclGeneration::volta;
}

// The compute capability of a device that does not state it, by its rates: matrix units for TF32 came
// with Ampere, those for FP16 with Volta.
int capability_by_rates(const models::Device& device) {
  constexpr int volta = 70;
  constexpr int pascal = 60;
  return device.tf32 ? ampere : device.fp16_tensor ? volta : pascal;
}

double nvlink_share(const NcclTables& tables, int capability) {
  constexpr int volta = 70;
  switch (generation(capability)) {
    case NcclGeneration::blackwell:
      return tables.link_share.blackwell;
    case NcclGeneration::hopper:
      return tables.link_share.hopper;
    case NcclGeneration::ampere:
      return tables.link_share.ampere;
    case NcclGeneration::volta:
      return capability >= volta ? tables.link_share.volta : tables.link_share.pascal;
  }
  return 0;
}

// One node as the search counts it, in GB/s.
struct Node {
  int gpus = 1;
  bool nvlink = false;
  bool network = false;  // there are other nodes
  double port = 0;       // of one GPU into the node, each direction
  double nic = 0;
  int nics = 0;  // that its GPUs reach; a GPU by itself reaches one
  int capability = 0;
};

// How many of a job's ranks one node holds, and how many NICs those use.
struct OnANode {
  int ranks = 1;
  int nics = 1;
  auto operator<=>(const OnANode&) const = default;
};

// ncclTopoCompute: channels of one speed, as many as links carry.
class Search {
 public:
  Search(const NcclTables& tables, const Node& node, NcclAlgorithm algorithm)
      : rules_(tables.search),
        node_(node),
        is_tree_(algorithm == NcclAlgorithm::tree),
        speeds_((node.network ? rules_.inter_gbps : rules_.intra_gbps)[speed_row(node)]) {
    graph_.through_one_rank =
        is_tree_ && node.network &&
        (node.gpus == 1 || (node.capability >= rules_.simple_tree_from && node.nics >= node.gpus));
  }

  NcclGraph run(int least_channels, int most_channels) {
    slow_down(least_channels, most_channels);
    split(most_channels);
    speed_up();
    if (graph_.channels == 0) {
      graph_.channels = 1;
      graph_.intra_gbps = graph_.inter_gbps = rules_.fallback_gbps;
    }
    return graph_;
  }

 private:
  static std::size_t speed_row(const Node& node) {
    return node.capability >= blackwell ? 2 : node.capability >= hopper ? 1 : 0;
  }

  // The port of each GPU, in the units of a channel's speed inside the node. The end of a chain
  // sends nothing on, and ends are spread over the GPUs. Over PCIe, the first GPUs of a tree pass
  // the NIC's traffic through the same port: all of it through one, or half each through two.
  [[nodiscard]] double port() const {
    double port = node_.port;
    if (is_tree_ && node_.gpus > 1) port *= node_.gpus / (node_.gpus - 1.0);
    if (is_tree_ && !node_.nvlink && node_.network)
      port = node_.port / (graph_.through_one_rank ? 2.0 : 1.5);
    return port;
  }

  [[nodiscard]] int channels_that_fit(double intra, double inter, int most) const {
    constexpr double rounding = 1e-9;
    double fit = most;
    if (node_.gpus > 1) fit = std::min(fit, std::floor(port() / intra + rounding));
    if (node_.network) fit = std::min(fit, node_.nics * std::floor(node_.nic / inter + rounding));
    return static_cast<int>(fit);
  }

  // The first pass: from the fastest speed down, the most bandwidth of all channels together.
  void slow_down(int least, int most) {
    const double fastest = node_.network ? node_.nic : node_.port;
    std::size_t i = 0;
    while (i + 1 < speeds_.size() &&
           (speeds_[i] > fastest || (node_.gpus > 1 && speeds_[i] * least > port())))
      ++i;
    for (;; ++i) {
      const int channels = channels_that_fit(speeds_[i], speeds_[i], most);
      if (channels >= least && channels * speeds_[i] > graph_.channels * graph_.intra_gbps) {
        graph_.channels = channels;
        graph_.intra_gbps = graph_.inter_gbps = speeds_[i];
        if (channels == most) return;
      }
      if (graph_.channels > 0 && graph_.channels * graph_.inter_gbps >= node_.port) return;
      if (i + 1 == speeds_.size()) return;
      if (graph_.channels > 0 && speeds_[i + 1] / graph_.inter_gbps <= rules_.least_next) return;
    }
  }

  // ncclTopoDupChannels.
  void split(int most) {
    if (graph_.intra_gbps < rules_.split_from_gbps) return;
    if (node_.capability > ampere && graph_.intra_gbps < rules_.split_from_after_ampere_gbps &&
        graph_.channels > rules_.split_channels)
      return;
    const int channels = std::min(2 * graph_.channels, most);
    const int parts = (channels + graph_.channels - 1) / graph_.channels;
    graph_.intra_gbps /= parts;
    graph_.inter_gbps /= parts;
    graph_.channels = channels;
  }

  // The second pass: the same channels faster. Trees only inside the node, up to twice the
  // network's.
  void speed_up() {
    if (graph_.channels == 0) return;
    std::size_t i = 0;
    while (i + 1 < speeds_.size() && speeds_[i] > graph_.inter_gbps) ++i;
    const int channels = graph_.channels;
    while (i > 0) {
      if (is_tree_ && graph_.intra_gbps >= 2 * graph_.inter_gbps) return;
      const double speed = speeds_[--i];
      const double inter = is_tree_ ? graph_.inter_gbps : speed;
      const bool fits = channels_that_fit(speed, inter, channels) >= channels &&
                        (node_.network || speed <= node_.port);
      if (fits) {
        graph_.intra_gbps = speed;
        graph_.inter_gbps = inter;
      } else if (is_tree_) {
        return;
      }
    }
  }

  const decltype(NcclTables::search)& rules_;
  const Node& node_;
  bool is_tree_;
  const std::vector<double>& speeds_;
  NcclGraph graph_;
};

// All ranks take the least that any node found.
NcclGraph common(const NcclGraph& a, const NcclGraph& b) {
  return {std::min(a.channels, b.channels), std::min(a.intra_gbps, b.intra_gbps),
          std::min(a.inter_gbps, b.inter_gbps), a.through_one_rank || b.through_one_rank};
}

}  // namespace

CpuVendor cpu_vendor_from_name(std::string_view text) {
  if (text == "intel") return CpuVendor::intel;
  if (text == "amd") return CpuVendor::amd;
  throw unknown_name("processor", text, {"intel", "amd"});
}

bool is_gpu(const models::Device& device) {
  return device.library == models::VendorLibrary::nccl ||
         device.library == models::VendorLibrary::rccl;
}

bool has_collectives(const models::Device& device) {
  return device.library && device.library != models::VendorLibrary::mpi;
}

bool sums_by_nccl(const models::Device& device) {
  return device.library == models::VendorLibrary::nccl;
}

void check_runs_nccl(const models::Device& device) {
  if (!device.library || sums_by_nccl(device)) return;
  throw InputError(
      *device.library == models::VendorLibrary::mpi
          ? fmt::format("NCCL does not run on {}", device.name)
          : fmt::format("NCCL does not run on {}, which has {}, and Paceline has no model of that",
                        device.name, name_in(models::vendor_libraries, *device.library)),
      "choose another strategy, such as fused-ring or hierarchical, or a cluster of NVIDIA's GPUs");
}

bool is_nccls(Collective collective) {
  return collective != Collective::gather && collective != Collective::scatter;
}

void check_is_nccls(Collective collective) {
  if (is_nccls(collective)) return;
  throw InputError(fmt::format("NCCL has no {} of its own", name(collective)),
                   fmt::format("time {} of the catalogue", name(collective)));
}

bool is_sends_and_receives(Collective collective) {
  return collective == Collective::all_to_all || collective == Collective::neighbour_exchange;
}

void check_has_model(Collective collective) {
  check_is_nccls(collective);
  if (is_sends_and_receives(collective))
    throw InputError(
        fmt::format("NCCL chooses no algorithm for {}, which is sends and receives",
                    name(collective)),
        fmt::format("paceline time nccl --collective {} times them", name(collective)));
}

std::string described(const NcclTables& tables) {
  return fmt::format("NCCL {}'s own tuning model (tuning.cc)", tables.version);
}

NcclModel::NcclModel(NcclTables tables, const models::Cluster& cluster, int ranks,
                     models::Collective collective, CpuVendor cpu)
    : tables_(std::move(tables)), collective_(collective), cpu_(cpu), ranks_(ranks) {
  models::check_ranks(cluster, ranks);
  check_is_nccls(collective);
  check_runs_nccl(cluster.device);
  const int g = cluster.ranks_per_node;
  const std::vector<std::vector<int>> nodes =
      models::slots_by_node(models::slots_of_ranks(cluster.slots, cluster.placement, g, ranks), g);
  nodes_ = static_cast<int>(nodes.size());
  if (nodes_ > 1) told_latency_ = cluster.nic.told_latency;
  std::set<OnANode> on_a_node;
  for (const std::vector<int>& node : nodes)
    on_a_node.insert({static_cast<int>(node.size()),
                      node.size() == 1 ? 1 : models::nics_beside(node, cluster.nics_per_node, g)});
  most_on_a_node_ = on_a_node.rbegin()->ranks;
  are_nodes_alike_ = on_a_node.begin()->ranks == most_on_a_node_;
  nics_on_a_node_ = std::ranges::min_element(on_a_node, {}, &OnANode::nics)->nics;
  compute_capability_ = cluster.device.compute_capability;
  knows_device_ = compute_capability_ > 0;
  if (!knows_device_) compute_capability_ = capability_by_rates(cluster.device);
  on_nvlink_ = cluster.intra.is(models::LinkKind::nvlink);
  if (ranks == 1) return;

  const double share =
      on_nvlink_ ? nvlink_share(tables_, compute_capability_) : tables_.link_share.pci;
  const auto node_of = [&](const OnANode& node) {
    return Node{.gpus = node.ranks,
                .nvlink = on_nvlink_,
                .network = nodes_ > 1,
                .port = cluster.intra.line_rate.value.value() * share / giga,
                .nic = cluster.nic.line_rate.value.value() / giga,
                .nics = node.nics,
                .capability = compute_capability_};
  };
  std::vector<Node> kinds;
  for (const OnANode& node : on_a_node) kinds.push_back(node_of(node));
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const NcclGraph ring =
        Search(tables_, kinds[i], NcclAlgorithm::ring).run(1, tables_.search.most_channels);
    const NcclGraph tree =
        Search(tables_, kinds[i], NcclAlgorithm::tree).run(ring.channels, ring.channels);
    NcclGraph& rings = graphs_[to_size(NcclAlgorithm::ring)];
    NcclGraph& trees = graphs_[to_size(NcclAlgorithm::tree)];
    rings = i == 0 ? ring : common(rings, ring);
    trees = i == 0 ? tree : common(trees, tree);
  }
  const int channels = std::min(graphs_[0].channels, graphs_[1].channels);
  for (NcclGraph& graph : graphs_) graph.channels = channels;
  const auto& search = tables_.search;
  communicator_channels_ = std::min(search.most_communicator_channels, channels * search.copies);
  if (compute_capability_ >= search.recopied_from && nodes_ > 1 &&
      graph(NcclAlgorithm::ring).intra_gbps > search.recopied_above_gbps &&
      communicator_channels_ < search.recopied_below)
    communicator_channels_ *= 2;

  if (is_sends_and_receives(collective_)) return;
  for (const NcclAlgorithm algorithm : nccl_algorithms) {
    const bool is_ring = algorithm == NcclAlgorithm::ring;
    if (!is_ring && collective_ != Collective::all_reduce) continue;
    const double ratio =
        is_ring ? static_cast<double>(ranks_) / ring_steps(collective_, ranks_) : 0.5;
    for (const NcclProtocol protocol : nccl_protocols) {
      Cost& cost = costs_[to_size(algorithm)][to_size(protocol)];
      if (protocol == NcclProtocol::ll128 && !offers_ll128()) continue;
      cost.bandwidth_gbps = ratio * bus_bandwidth(algorithm, protocol);
      cost.latency_us = tables_.base_latency_us[to_size(algorithm)][to_size(protocol)] +
                        step_latencies(algorithm, protocol);
    }
  }
}

bool NcclModel::offers_ll128() const {
  if (most_on_a_node_ > 1 && !on_nvlink_) return false;
  if (tables_.ll128_only.empty()) return compute_capability_ >= tables_.ll128_from;
  return std::find(tables_.ll128_only.begin(), tables_.ll128_only.end(), compute_capability_) !=
         tables_.ll128_only.end();
}

double NcclModel::bus_bandwidth(NcclAlgorithm algorithm, NcclProtocol protocol) const {
  const NcclGraph& graph = graphs_[to_size(algorithm)];
  const auto& share = tables_.efficiency;
  const auto gpu = to_size(generation(compute_capability_));
  const auto by_nodes = to_size(std::min(nodes_, 3) - 1);
  const std::size_t ll_row = nodes_ == 1 ? gpu : cpu_ == CpuVendor::amd ? 1 : 0;
  const double ll_most = tables_.ll_most_gbps[ll_row][by_nodes];
  const double channels = graph.channels;
  double bus = channels * (nodes_ <= 2 ? graph.intra_gbps : graph.inter_gbps);

  if (algorithm == NcclAlgorithm::ring) {
    if (protocol == NcclProtocol::ll) return std::min(ll_most, share.ring_ll * bus);
    if (protocol == NcclProtocol::ll128) {
      const bool one_a_node = ranks_ < 2 * nodes_;
      return std::min(bus * (one_a_node ? share.ring_ll128_one_rank_a_node : share.ring_ll128),
                      channels * tables_.ring_ll128_most_gbps[gpu][by_nodes]);
    }
    return bus;
  }
  bus = std::min(share.tree * bus, channels * tables_.tree_most_gbps[gpu][by_nodes]);
  if (protocol == NcclProtocol::ll) bus = std::min(share.tree_ll * bus, ll_most);
  if (protocol == NcclProtocol::ll128)
    bus = std::min(bus * (nodes_ == 1 ? share.tree_ll128_one_node : share.tree_ll128),
                   channels * tables_.tree_ll128_most_gbps[gpu][by_nodes]);
  return graph.through_one_rank ? share.tree_through_one_rank * bus : bus;
}

double NcclModel::node_step_us(NcclAlgorithm algorithm, NcclProtocol protocol) const {
  // A node of one rank has no NVLink path, and NCCL reads PCI's row for it.
  const bool nvlink = on_nvlink_ && most_on_a_node_ > 1;
  const NcclTables::Pair& steps = nvlink ? tables_.nvlink_latency_us : tables_.pci_latency_us;
  return steps[to_size(algorithm)][to_size(protocol)];
}

double NcclModel::network_step_us(NcclAlgorithm algorithm, NcclProtocol protocol) const {
  const bool as_tree = tables_.latency.one_rank_a_node_as_tree && ranks_ == nodes_;
  const double told = told_latency(protocol).value() / micro;
  return told + tables_.network_latency_us[to_size(as_tree ? NcclAlgorithm::tree : algorithm)]
                                          [to_size(protocol)];
}

double NcclModel::first_step_us(NcclProtocol protocol) const {
  return nodes_ > 1 ? tables_.network_latency_us[to_size(NcclAlgorithm::ring)][to_size(protocol)]
                    : node_step_us(NcclAlgorithm::ring, protocol);
}

Seconds NcclModel::message_latency(NcclProtocol protocol) const {
  const NcclTables::Row& base = tables_.base_latency_us[to_size(NcclAlgorithm::ring)];
  return Seconds{micro * (base[to_size(protocol)] + first_step_us(protocol))};
}

double NcclModel::step_latencies(NcclAlgorithm algorithm, NcclProtocol protocol) const {
  const auto& rules = tables_.latency;
  double intra = node_step_us(algorithm, protocol);
  const double inter = network_step_us(algorithm, protocol);
  if (algorithm == NcclAlgorithm::tree) {
    const int levels = static_cast<int>(std::floor(std::log2(nodes_)));
    return 2.0 * ((ranks_ / nodes_ - 1) * intra + levels * inter);
  }
  if (is_rooted(collective_)) return first_step_us(protocol);
  if (nodes_ > 1) {
    double overhead =
        cpu_ == CpuVendor::amd ? rules.net_overhead_amd_us : rules.net_overhead_intel_us;
    if (protocol == NcclProtocol::simple) overhead *= rules.net_overhead_simple;
    intra = std::max(intra, overhead);
  }
  const int network_steps = nodes_ == 1 ? 0
                            : collective_ == Collective::all_reduce
                                ? 2 * (nodes_ - rules.ring_network_steps_less)
                                : nodes_ - 1;
  return (ring_steps(collective_, ranks_) - network_steps) * intra + network_steps * inter;
}

const NcclModel::Cost& NcclModel::cost(NcclAlgorithm algorithm, NcclProtocol protocol) const {
  return costs_[to_size(algorithm)][to_size(protocol)];
}

const NcclGraph& NcclModel::graph(NcclAlgorithm algorithm) const {
  return graphs_[to_size(algorithm)];
}

BytesPerSecond NcclModel::bandwidth(NcclAlgorithm algorithm, NcclProtocol protocol) const {
  return BytesPerSecond{giga * cost(algorithm, protocol).bandwidth_gbps};
}

Seconds NcclModel::latency(NcclAlgorithm algorithm, NcclProtocol protocol) const {
  return Seconds{micro * cost(algorithm, protocol).latency_us};
}

std::optional<NcclTime> NcclModel::parts(NcclAlgorithm algorithm, NcclProtocol protocol,
                                         Bytes bytes) const {
  const Cost& cost = this->cost(algorithm, protocol);
  if (cost.bandwidth_gbps == 0) return std::nullopt;
  double latency_us = cost.latency_us;
  double bandwidth_gbps = cost.bandwidth_gbps;
  if (algorithm == NcclAlgorithm::tree) {
    constexpr double first_size = 64;
    const std::vector<double>& correction = tables_.tree_correction[to_size(protocol)];
    if (bytes.value() >= first_size) {
      const auto size = to_size(std::ilogb(bytes.value() / first_size));
      if (size < correction.size()) bandwidth_gbps *= correction[size];
    }
  } else if (protocol == NcclProtocol::simple && nodes_ > 1 &&
             collective_ == Collective::all_reduce) {
    const double share =
        std::floor(bytes.value() / (static_cast<double>(communicator_channels_) * ranks_));
    if (share >= tables_.latency.plateau_bytes)
      latency_us *= compute_capability_ < ampere ? tables_.latency.plateau_before_ampere
                                                 : tables_.latency.plateau;
  }
  return NcclTime{Seconds{micro * latency_us}, Seconds{bytes.value() / (giga * bandwidth_gbps)}};
}

std::optional<Seconds> NcclModel::time(NcclAlgorithm algorithm, NcclProtocol protocol,
                                       Bytes bytes) const {
  const std::optional<NcclTime> time = parts(algorithm, protocol, bytes);
  if (!time) return std::nullopt;
  return time->latency + time->transfer;
}

std::optional<NcclChoice> NcclModel::choice(Bytes bytes, std::optional<NcclAlgorithm> only) const {
  std::optional<NcclChoice> best;
  for (const NcclAlgorithm algorithm : nccl_algorithms) {
    if (only && algorithm != *only) continue;
    for (const NcclProtocol protocol : nccl_protocols) {
      const std::optional<Seconds> time = this->time(algorithm, protocol, bytes);
      if (time && (!best || *time < best->time))
        best = NcclChoice{algorithm, protocol, channels(algorithm, protocol, bytes), *time};
    }
  }
  return best;
}

Seconds NcclModel::time(Bytes bytes) const {
  const std::optional<NcclChoice> best = choice(bytes);
  return best ? best->time : Seconds{0};
}

int NcclModel::channels(NcclAlgorithm algorithm, NcclProtocol protocol, Bytes bytes) const {
  const auto& rules = tables_.threads;
  double threads = rules.most[to_size(protocol)];
  double bytes_a_thread = rules.bytes_a_thread[to_size(protocol)];
  if (algorithm == NcclAlgorithm::ring) {
    const NcclGraph& ring = graph(algorithm);
    if (protocol == NcclProtocol::simple && ring.intra_gbps * ring.channels <= rules.slow_ring_gbps)
      threads = rules.ring_simple_slow;
    if (protocol == NcclProtocol::ll) bytes_a_thread *= ranks_;
  }
  const double fed = std::floor(bytes.value() / (threads * bytes_a_thread));
  return static_cast<int>(std::clamp<double>(fed, 1, std::max(1, communicator_channels_)));
}

double bus_factor(Collective collective, int ranks) {
  if (is_rooted(collective) || collective == Collective::neighbour_exchange) return 1;
  return (collective == Collective::all_reduce ? 2.0 : 1.0) * (ranks - 1) / ranks;
}

Bytes bucket_of(Collective collective, int ranks, Bytes counted) {
  return is_sends_and_receives(collective) ? ranks * counted : counted;
}

Bytes counted_of(Collective collective, int ranks, Bytes bucket) {
  return is_sends_and_receives(collective) ? bucket / ranks : bucket;
}

BytesPerSecond bus_bandwidth(Collective collective, int ranks, Bytes bytes, Seconds time) {
  return bus_factor(collective, ranks) * bytes / time;
}

std::string described_capability(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

}  // namespace paceline::simulator
