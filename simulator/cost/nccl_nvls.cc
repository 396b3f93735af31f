// Tests: tests/simulator/nccl_nvls_test.cc.
#include "simulator/cost/nccl_nvls.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace paceline::simulator {
namespace {

constexpr double giga = 1e9;
constexpr int hopper = 90;
constexpr int blackwell = 100;

// nvlsEfficiency, and perChMaxNVLSTreeBws of two and of more nodes.
struct Switches {
  double efficiency;
  double most_two_nodes;
  double most_more_nodes;
};
constexpr Switches hopper_switches{0.85, 57.7, 45.5};
constexpr Switches blackwell_switches{0.74, 96.0, 43.1};

// hwLatencies of NVLS with Simple, its only protocol.
constexpr Seconds node_latency{25e-6};

double fastest_within(const std::vector<double>& falling_speeds, double most) {
  constexpr double rounding = 1e-9;
  for (const double speed : falling_speeds) {
    if (speed <= most * (1 + rounding)) return speed;
  }
  return 0;
}

}  // namespace

bool NcclNvls::is_chosen(const NcclModel& model, Bytes bytes) const {
  const std::optional<NcclChoice> other = model.choice(bytes);
  return other && time(model.ranks(), bytes) < other->time;
}

Seconds NcclNvls::transfer(int ranks, Bytes bytes, double intra_share, double inter_share) const {
  double channel = intra_gbps * intra_share;
  if (inter_gbps > 0) channel = std::min(channel, inter_gbps * inter_share);
  const double algorithm_gbps = channels * channel * ranks / (2.0 * (ranks - 1));
  return Seconds{bytes.value() / (giga * algorithm_gbps)};
}

std::optional<NcclNvls> nccl_nvls(const NcclModel& model, const models::Cluster& cluster) {
  constexpr int least_gpus = 3;
  const int capability = model.compute_capability();
  const int nodes = model.nodes();
  const int gpus = model.ranks() / nodes;
  const bool has_switches = model.on_nvlink() && cluster.intra_kind == models::IntraKind::switched;
  const bool is_over_tcp = nodes > 1 && cluster.nic.protocol == models::Protocol::tcp;
  if (model.collective() != models::Collective::all_reduce || capability < hopper ||
      !has_switches || gpus < least_gpus || !model.are_nodes_alike() || is_over_tcp)
    return std::nullopt;

  const NcclTables& tables = model.tables();
  const bool is_blackwell = capability >= blackwell;
  const std::size_t row = is_blackwell ? 2 : 1;
  const Switches& switches = is_blackwell ? blackwell_switches : hopper_switches;
  NcclNvls nvls;
  // Each channel has a GPU at its head, and NCCL allows at most this many heads (NCCL_MAX_NVLS_ARITY).
  constexpr int most_heads = 32;
  nvls.channels = std::min(gpus, most_heads);
  nvls.port_gbps = cluster.intra.line_rate.value.value() / giga *
                   (is_blackwell ? tables.link_share.blackwell : tables.link_share.hopper);
  const double through_switch =
      fastest_within(tables.search.intra_gbps[row], nvls.port_gbps / nvls.channels);
  nvls.intra_gbps =
      2 * switches.efficiency * (nvls.channels - 1.0) / nvls.channels * through_switch;
  nvls.latency = node_latency;
  if (nodes > 1) {
    const double nics =
        cluster.nic.line_rate.value.value() / giga * model.nics_on_a_node() / nvls.channels;
    nvls.network_gbps = fastest_within(tables.search.inter_gbps[row], nics);
    const double most = nodes == 2 ? switches.most_two_nodes : switches.most_more_nodes;
    nvls.inter_gbps = std::min((nodes == 2 ? 2 : 1) * nvls.network_gbps, most);
    nvls.network_steps = 2 * std::ilogb(nodes);
    nvls.latency +=
        nvls.network_steps * (nccl_nvls_network_step + model.told_latency(NcclProtocol::simple));
    if (nvls.network_gbps == 0) return std::nullopt;
  }
  if (through_switch == 0) return std::nullopt;
  return nvls;
}

}  // namespace paceline::simulator
