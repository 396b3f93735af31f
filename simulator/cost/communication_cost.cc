// Tests: tests/simulator/cost_test.cc.
#include "simulator/cost/communication_cost.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "models/base/interval.h"
#include "models/cluster/alike_slots.h"
#include "models/cluster/link_rules.h"

namespace paceline::simulator {
namespace {

LinkCost link_cost(const Figure<Seconds>& latency, const Figure<BytesPerSecond>& bandwidth,
                   Bound bound) {
  return {cost_at(latency, bound), 1.0 / rate_at(bandwidth, bound)};
}

// The curve of a kind between nodes whose ranks are nearest by ratio; null if there is none.
const models::CalibratedCurve* nearest_curve(const models::Profile& profile, models::CurveKind kind,
                                             int ranks) {
  const auto apart = [ranks](const models::CalibratedCurve& curve) {
    return std::abs(std::log(static_cast<double>(curve.ranks) / std::max(1, ranks)));
  };
  const models::CalibratedCurve* best = nullptr;
  for (const models::CalibratedCurve& curve : profile.curves) {
    if (curve.kind != kind || !curve.between_nodes) continue;
    if (best == nullptr || apart(curve) < apart(*best)) best = &curve;
  }
  return best;
}

// The piece that holds this many bytes, of at least one.
const MessageAlpha& piece_of(const std::vector<MessageAlpha>& pieces, Bytes bytes) {
  const auto above = std::upper_bound(pieces.begin(), pieces.end(), bytes,
                                      [](Bytes b, const MessageAlpha& p) { return b < p.from; });
  return above == pieces.begin() ? pieces.front() : *std::prev(above);
}

// The factor by which a fit may be too fast or too slow at a bound: 90 % of errors are within it
// if they are normal and the curve's misfit is their standard deviation.
double misfit(const models::CalibratedCurve& curve, Bound bound) {
  const double by = normal_reach * curve.misfit();
  if (bound == Bound::stated) return 1;
  return bound == Bound::slow ? 1 + by : std::max(0.0, 1 - by);
}

std::vector<MessageAlpha> pieces_of(const models::CalibratedCurve& curve, Bound bound) {
  std::vector<MessageAlpha> pieces;
  const double factor = misfit(curve, bound);
  for (const models::CurvePiece& piece : curve.pieces) {
    pieces.push_back(
        {piece.from, cost_at(piece.alpha, bound) * factor, cost_at(piece.beta, bound) * factor});
  }
  return pieces;
}

// The curve as what the transport adds to the NIC's bandwidth, which is of messages in a row, and
// to the headers that take their part of it.
std::vector<MessageAlpha> beyond_wire(const models::CalibratedCurve& curve, Bound bound,
                                      SecondsPerByte wire, Bytes header) {
  std::vector<MessageAlpha> pieces = pieces_of(curve, bound);
  for (MessageAlpha& piece : pieces) {
    piece.per_byte -= wire;
    piece.alpha -= header * wire;
  }
  return pieces;
}

// The NIC's bandwidth may be off by as much as the curve.
void take_curve(const models::CalibratedCurve& curve, Bound bound, CommunicationCost& cost) {
  cost.nic.beta *= misfit(curve, bound);
  cost.transport->nic = beyond_wire(curve, bound, cost.nic.beta, cost.transport->message_header);
  cost.nic.alpha = pieces_of(curve, bound).front().alpha;
}

void take_transport(const models::Profile& profile, Bound bound, int ranks,
                    CommunicationCost& cost) {
  const models::CalibratedTransport& transport = *profile.transport;
  cost.transport = {
      .message_sizes = {static_cast<std::int64_t>(transport.smallest_message.value()),
                        static_cast<std::int64_t>(transport.largest_message.value()),
                        static_cast<std::int64_t>(transport.ahead.value())},
      .message_gap = transport.message_gap ? cost_at(*transport.message_gap, bound) : Seconds{0},
      .message_header =
          transport.message_header ? cost_at(*transport.message_header, bound) : Bytes{0},
      .is_fair = transport.fairness > 0.5};
  for (const models::CalibratedRate& rate : profile.rates) {
    const SecondsPerByte time = 1.0 / rate_at(rate.bytes, bound);
    if (rate.kind == models::RateKind::copy) cost.transport->copy = time;
    if (rate.kind != models::RateKind::cast) continue;
    if (rate.type == models::NumberType::fp16) cost.transport->cast_fp16 = time;
    if (rate.type == models::NumberType::bf16) cost.transport->cast_bf16 = time;
  }
  if (const auto* curve = nearest_curve(profile, models::CurveKind::exchange, ranks))
    take_curve(*curve, bound, cost);
  if (const auto* curve = nearest_curve(profile, models::CurveKind::point_to_point, 2))
    cost.transport->nic_alone =
        beyond_wire(*curve, bound, cost.nic.beta, cost.transport->message_header);
}

}  // namespace

Seconds CommunicationCost::nic_alpha(Bytes bytes) const {
  if (!transport || transport->nic.empty()) return nic.alpha;
  const MessageAlpha& piece = piece_of(transport->nic, bytes);
  return std::max(Seconds{0}, piece.alpha + bytes * piece.per_byte);
}

Seconds CommunicationCost::nic_alpha_alone(Bytes bytes) const {
  const Seconds among_others = nic_alpha(bytes);
  if (!transport || transport->nic_alone.empty()) return among_others;
  const MessageAlpha& piece = piece_of(transport->nic_alone, bytes);
  return std::clamp(piece.alpha + bytes * piece.per_byte, Seconds{0}, among_others);
}

BytesPerSecond effective_memory_bandwidth(const models::Device& device, Bound bound) {
  return rate_at(device.memory_bandwidth, bound) * rate_at(device.memory_efficiency, bound);
}

namespace {

HostCost host_cost(const models::Host& host, Bound bound) {
  constexpr double memory_bytes_per_byte = 4;
  const auto beta = [bound](const std::optional<Figure<BytesPerSecond>>& rate) {
    return rate ? 1.0 / rate_at(*rate, bound) : SecondsPerByte{0};
  };
  return {.staged = !host.peer_to_peer,
          .sockets = host.sockets,
          .crossing = beta(host.crossing),
          .memory = memory_bytes_per_byte * beta(host.memory_bandwidth),
          .switches = host.switches,
          .uplink = beta(host.uplink)};
}

// What a rank's port gets, if it sends and receives.
Figure<BytesPerSecond> port_bandwidth(const models::Cluster& cluster, int ranks) {
  const bool staged = cluster.host && !cluster.host->peer_to_peer;
  const models::Link& link = staged && cluster.host->lane ? *cluster.host->lane : cluster.intra;
  const Figure<BytesPerSecond>& bandwidth =
      models::bandwidth_for(link, models::most_ranks_on_a_node(cluster, ranks));
  return staged ? models::staged_bandwidth(bandwidth) : bandwidth;
}

// Where the job's ranks sit. A list by which they sit node by node is the default placement.
void place(const models::Cluster& cluster, int ranks, CommunicationCost& cost) {
  cost.placement = cluster.placement;
  models::AlikeSlots alike = models::alike_slots(cluster);
  cost.slow_nodes = std::move(alike.slow_nodes);
  const auto listed = static_cast<int>(alike.slots.size());
  const auto end = alike.slots.begin() + (ranks > 0 ? std::min(ranks, listed) : listed);
  int rank = 0;
  const auto is_in_its_place = [&rank](int slot) { return slot == rank++; };
  if (std::all_of(alike.slots.begin(), end, is_in_its_place)) {
    if (listed > 0) cost.placement = models::Placement::node_major;
  } else {
    cost.slots = std::move(alike.slots);
  }
}

}  // namespace

CommunicationCost communication_cost(const models::Cluster& cluster, const models::Profile* profile,
                                     Bound bound, int ranks) {
  const auto or_catalogue = [](const auto& calibrated, const auto& stated) {
    return calibrated ? *calibrated : stated;
  };
  CommunicationCost cost;
  cost.ranks_per_node = cluster.ranks_per_node;
  cost.by_nvlink = cluster.intra.is(models::LinkKind::nvlink);
  cost.nics_per_node = cluster.nics_per_node;
  cost.nic_use = cluster.nic_use;
  cost.intra_kind = cluster.intra_kind;
  cost.fabric = cluster.fabric;
  if (cluster.hop_latency) cost.fabric.hop_latency = cost_at(*cluster.hop_latency, bound);
  place(cluster, ranks, cost);
  cost.platform = cluster.platform;
  cost.nodes = cluster.nodes;
  const Figure<BytesPerSecond> intra_bandwidth = port_bandwidth(cluster, ranks);
  if (models::passes_host(cluster) && (profile == nullptr || !profile->intra_bandwidth))
    cost.host = host_cost(*cluster.host, bound);
  // Nothing passes the NIC of a cluster that has none, and no rate may be endless.
  const models::Link& nic = cluster.has_nic() ? cluster.nic : cluster.intra;
  if (profile == nullptr) {
    cost.intra = link_cost(cluster.intra.latency, intra_bandwidth, bound);
    cost.nic = link_cost(nic.latency, nic.bandwidth, bound);
  } else {
    cost.intra = link_cost(or_catalogue(profile->intra_latency, cluster.intra.latency),
                           or_catalogue(profile->intra_bandwidth, intra_bandwidth), bound);
    cost.nic = link_cost(or_catalogue(profile->nic_latency, nic.latency),
                         or_catalogue(profile->nic_bandwidth, nic.bandwidth), bound);
  }
  constexpr double bytes_moved_per_byte_reduced = 3;
  const bool reduces_beside = cluster.device.reduction == models::Reduction::while_receiving;
  if (!reduces_beside || (profile != nullptr && profile->transport)) {
    cost.gamma = bytes_moved_per_byte_reduced / effective_memory_bandwidth(cluster.device, bound);
  }
  if (profile != nullptr) {
    for (const models::CalibratedRate& rate : profile->rates) {
      if (rate.kind == models::RateKind::reduce && rate.type == models::NumberType::fp32)
        cost.gamma = 1.0 / rate_at(rate.bytes, bound);
    }
    models::Fabric& fabric = cost.fabric;
    if (profile->uplink_oversubscription && fabric.kind == models::FabricKind::fat_tree &&
        !fabric.levels.empty()) {
      fabric.levels.front().oversubscription = cost_at(*profile->uplink_oversubscription, bound);
    }
    if (profile->transport) take_transport(*profile, bound, ranks, cost);
  }
  return cost;
}

}  // namespace paceline::simulator
