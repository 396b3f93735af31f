// Tests: tests/simulator/cost_test.cc.
#include "simulator/cost/communication_cost.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace paceline::simulator {
namespace {

LinkCost link_cost(const Figure<Seconds>& latency, const Figure<BytesPerSecond>& bandwidth,
                   Reading reading) {
  return {read_figure(latency, reading, false), 1.0 / read_figure(bandwidth, reading, true)};
}

// Of the all-rank exchange between nodes whose ranks are the nearest; null if there is none.
const models::CalibratedCurve* exchange_curve(const models::Profile& profile, int ranks) {
  const models::CalibratedCurve* best = nullptr;
  for (const models::CalibratedCurve& curve : profile.curves) {
    if (curve.kind != models::CurveKind::exchange || !curve.between_nodes) continue;
    if (best == nullptr || std::abs(curve.ranks - ranks) < std::abs(best->ranks - ranks))
      best = &curve;
  }
  return best;
}

// The curve as NIC and transport. Its pieces' betas beyond that of the last one are alpha's.
void take_curve(const models::CalibratedCurve& curve, Reading reading, CommunicationCost& cost) {
  const auto alpha = [&](const models::CurvePiece& p) {
    return read_figure(p.alpha, reading, false);
  };
  const auto beta = [&](const models::CurvePiece& p) {
    return read_figure(p.beta, reading, false);
  };
  cost.nic = {alpha(curve.pieces.front()), beta(curve.pieces.back())};
  for (const models::CurvePiece& piece : curve.pieces)
    cost.transport->nic.push_back({piece.from, alpha(piece), beta(piece) - cost.nic.beta});
}

void take_transport(const models::Profile& profile, Reading reading, int ranks,
                    CommunicationCost& cost) {
  const models::CalibratedTransport& transport = *profile.transport;
  cost.transport = {.segmentation = {static_cast<std::int64_t>(transport.smallest_segment.value()),
                                     static_cast<std::int64_t>(transport.largest_segment.value())},
                    .message_gap = read_figure(transport.message_gap, reading, false),
                    .is_fair = transport.fairness > 0.5};
  for (const models::CalibratedRate& rate : profile.rates) {
    const SecondsPerByte time = 1.0 / read_figure(rate.bytes, reading, true);
    if (rate.kind == models::RateKind::copy) cost.transport->copy = time;
    if (rate.kind != models::RateKind::cast) continue;
    if (rate.type == models::NumberType::fp16) cost.transport->cast_fp16 = time;
    if (rate.type == models::NumberType::bf16) cost.transport->cast_bf16 = time;
  }
  if (const models::CalibratedCurve* curve = exchange_curve(profile, ranks))
    take_curve(*curve, reading, cost);
}

}  // namespace

Seconds CommunicationCost::nic_alpha(Bytes bytes) const {
  if (!transport || transport->nic.empty()) return nic.alpha;
  const auto& pieces = transport->nic;
  const auto above = std::upper_bound(pieces.begin(), pieces.end(), bytes,
                                      [](Bytes b, const MessageAlpha& p) { return b < p.from; });
  const MessageAlpha& piece = above == pieces.begin() ? pieces.front() : *std::prev(above);
  return std::max(Seconds{0}, piece.alpha + bytes * piece.per_byte);
}

BytesPerSecond effective_memory_bandwidth(const models::Device& device, Reading reading) {
  return read_figure(device.memory_bandwidth, reading, true) *
         read_figure(device.memory_efficiency, reading, true);
}

CommunicationCost communication_cost(const models::Cluster& cluster, const models::Profile* profile,
                                     Reading reading, int ranks) {
  const auto or_catalogue = [](const auto& calibrated, const auto& stated) {
    return calibrated ? *calibrated : stated;
  };
  CommunicationCost cost;
  cost.ranks_per_node = cluster.ranks_per_node;
  cost.nics_per_node = cluster.nics_per_node;
  cost.nic_use = cluster.nic_use;
  cost.intra_kind = cluster.intra_kind;
  cost.fabric = cluster.fabric;
  if (cluster.hop_latency)
    cost.fabric.hop_latency = read_figure(*cluster.hop_latency, reading, false);
  cost.placement = cluster.placement;
  cost.slots = cluster.slots;
  cost.slow_nodes = cluster.slow_nodes;
  cost.platform = cluster.platform;
  cost.nodes = cluster.nodes;
  if (profile == nullptr) {
    cost.intra = link_cost(cluster.intra.latency, cluster.intra.bandwidth, reading);
    cost.nic = link_cost(cluster.nic.latency, cluster.nic.bandwidth, reading);
  } else {
    cost.intra =
        link_cost(or_catalogue(profile->intra_latency, cluster.intra.latency),
                  or_catalogue(profile->intra_bandwidth, cluster.intra.bandwidth), reading);
    cost.nic = link_cost(or_catalogue(profile->nic_latency, cluster.nic.latency),
                         or_catalogue(profile->nic_bandwidth, cluster.nic.bandwidth), reading);
  }
  constexpr double bytes_moved_per_byte_reduced = 3;
  cost.gamma = bytes_moved_per_byte_reduced / effective_memory_bandwidth(cluster.device, reading);
  if (profile != nullptr) {
    for (const models::CalibratedRate& rate : profile->rates) {
      if (rate.kind == models::RateKind::reduce && rate.type == models::NumberType::fp32)
        cost.gamma = 1.0 / read_figure(rate.bytes, reading, true);
    }
    if (profile->transport) take_transport(*profile, reading, ranks, cost);
  }
  return cost;
}

}  // namespace paceline::simulator
