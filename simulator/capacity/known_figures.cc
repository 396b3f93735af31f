// Tests: tests/simulator/capacity_test.cc.
#include "simulator/capacity/known_figures.h"

#include "models/base/names.h"

namespace paceline::simulator {
namespace {

template <class Q>
void settle(Figure<Q>& figure) {
  figure.low = figure.high = figure.value;
}
template <class Q>
void settle(std::optional<Figure<Q>>& figure) {
  if (figure) settle(*figure);
}

void settle_latency(models::Link& link) {
  settle(link.latency);
}
void settle_bandwidth(models::Link& link) {
  settle(link.line_rate);
  settle(link.bandwidth);
  for (auto& [ranks, bandwidth] : link.bandwidth_by_ranks) settle(bandwidth);
}
void settle_link(models::Link& link) {
  settle_latency(link);
  settle_bandwidth(link);
}

void settle_compute(models::Cluster& cluster, models::Profile* profile) {
  models::Device& device = cluster.device;
  settle(device.fp32);
  settle(device.tf32);
  settle(device.fp16);
  settle(device.fp16_tensor);
  settle(device.bf16);
  settle(device.memory_bandwidth);
  settle(device.compute_efficiency);
  settle(device.memory_efficiency);
  settle(device.roofline_efficiency);
  settle(device.roofline_efficiency_mixed);
  if (device.transformer) {
    settle(device.transformer->product);
    settle(device.transformer->attention);
    settle(device.transformer->fp8);
    settle(device.transformer->reached);
  }
  if (cluster.effects) {
    settle(cluster.effects->layer_launch);
    settle(cluster.effects->host_launch);
    settle(cluster.effects->host_launch_transformer);
    settle(cluster.effects->host_update);
  }
  if (profile == nullptr) return;
  for (models::CalibratedThroughput& entry : profile->throughputs) settle(entry.samples);
  for (models::CalibratedSlowdown& entry : profile->slowdowns) settle(entry.factor);
  for (models::CalibratedRate& entry : profile->rates) settle(entry.bytes);
  for (models::CalibratedLayer& entry : profile->layers) {
    settle(entry.forward);
    settle(entry.backward);
    settle(entry.forward_beside_traffic);
    settle(entry.backward_beside_traffic);
  }
}

// What curves say of links between nodes, or within one.
void settle_curves(models::Profile& profile, bool between_nodes, bool latency, bool bandwidth) {
  for (models::CalibratedCurve& curve : profile.curves) {
    if (curve.between_nodes != between_nodes) continue;
    for (models::CurvePiece& piece : curve.pieces) {
      if (latency) settle(piece.alpha);
      if (bandwidth) settle(piece.beta);
    }
  }
}

void settle_nic_bandwidth(models::Cluster& cluster, models::Profile* profile) {
  settle_bandwidth(cluster.nic);
  if (profile == nullptr) return;
  settle(profile->nic_bandwidth);
  settle(profile->nic_both_ways);
  settle(profile->uplink_oversubscription);
  settle_curves(*profile, /*between_nodes=*/true, /*latency=*/false, /*bandwidth=*/true);
}

void settle_nic_latency(models::Cluster& cluster, models::Profile* profile) {
  settle_latency(cluster.nic);
  settle(cluster.hop_latency);
  if (profile == nullptr) return;
  settle(profile->nic_latency);
  settle_curves(*profile, /*between_nodes=*/true, /*latency=*/true, /*bandwidth=*/false);
}

void settle_node(models::Cluster& cluster, models::Profile* profile) {
  settle_link(cluster.intra);
  if (cluster.host) {
    settle(cluster.host->crossing);
    settle(cluster.host->memory_bandwidth);
    settle(cluster.host->uplink);
    if (cluster.host->lane) settle_link(*cluster.host->lane);
  }
  if (profile == nullptr) return;
  settle(profile->intra_latency);
  settle(profile->intra_bandwidth);
  settle(profile->intra_both_ways);
  settle_curves(*profile, /*between_nodes=*/false, /*latency=*/true, /*bandwidth=*/true);
}

void settle_input(models::Cluster& cluster) {
  if (cluster.host_link) settle_link(*cluster.host_link);
  settle(cluster.storage);
  settle(cluster.decode_per_node);
}

void settle_unexplained(models::Effects& effects) {
  for (Figure<double>* figure :
       {&effects.unexplained, &effects.unexplained_doubling, &effects.unexplained_exposed})
    figure->value = figure->low = figure->high = 0;
}

}  // namespace

std::string_view name(FigureGroup group) {
  return name_in(figure_groups, group);
}

void make_known(FigureGroup group, models::Cluster& cluster,
                std::optional<models::Profile>& profile) {
  models::Profile* const own = profile ? &*profile : nullptr;
  models::Effects* const effects = cluster.effects ? &*cluster.effects : nullptr;
  switch (group) {
    case FigureGroup::compute:
      return settle_compute(cluster, own);
    case FigureGroup::nic_bandwidth:
      return settle_nic_bandwidth(cluster, own);
    case FigureGroup::nic_latency:
      return settle_nic_latency(cluster, own);
    case FigureGroup::intra_link:
      return settle_node(cluster, own);
    case FigureGroup::waiting:
      if (effects == nullptr) return;
      settle(effects->rank_spread);
      settle(effects->jitter);
      return settle(effects->crowding);
    case FigureGroup::beside_collectives:
      if (own != nullptr)
        for (models::CalibratedSlowdown& entry : own->slowdowns) settle(entry.beside_traffic);
      if (effects == nullptr) return;
      settle(effects->slowdown);
      return settle(effects->memory_bound);
    case FigureGroup::collective_launch:
      if (effects != nullptr) settle(effects->collective_launch);
      return;
    case FigureGroup::input:
      return settle_input(cluster);
    case FigureGroup::unexplained:
      if (effects != nullptr) settle_unexplained(*effects);
      return;
    case FigureGroup::price:
      return settle(cluster.price);
  }
}

}  // namespace paceline::simulator
