// Tests: tests/simulator/link_factors_test.cc.
#include "simulator/cost/link_factors.h"

#include "models/base/error.h"
#include "models/base/scale_figure.h"

namespace paceline::simulator {
namespace {

void scale(models::Link& link, const LinkFactors& factors) {
  scale(link.line_rate, factors.bandwidth);
  scale(link.bandwidth, factors.bandwidth);
  scale(link.latency, factors.latency);
  for (auto& [ranks, bandwidth] : link.bandwidth_by_ranks) scale(bandwidth, factors.bandwidth);
}

bool is_of(const LinkFactors& factors, Links links) {
  return factors.links == Links::all || factors.links == links;
}

}  // namespace

models::Cluster with_links(models::Cluster cluster, const LinkFactors& factors) {
  if (factors.bandwidth == 1 && factors.latency == 1) return cluster;
  if (cluster.platform != nullptr)
    throw InputError("a platform has links of its own", "change them in its file");
  if (is_of(factors, Links::between_nodes)) {
    scale(cluster.nic, factors);
    scale(cluster.hop_latency, factors.latency);
    cluster.fabric.hop_latency *= factors.latency;
  }
  if (is_of(factors, Links::in_nodes)) {
    scale(cluster.intra, factors);
    if (cluster.host) {
      scale(cluster.host->crossing, factors.bandwidth);
      scale(cluster.host->uplink, factors.bandwidth);
      if (cluster.host->lane) scale(*cluster.host->lane, factors);
    }
  }
  return cluster;
}

models::Profile with_links(models::Profile profile, const LinkFactors& factors) {
  if (factors.bandwidth == 1 && factors.latency == 1) return profile;
  if (is_of(factors, Links::in_nodes)) {
    scale(profile.intra_latency, factors.latency);
    scale(profile.intra_bandwidth, factors.bandwidth);
  }
  if (is_of(factors, Links::between_nodes)) {
    scale(profile.nic_latency, factors.latency);
    scale(profile.nic_bandwidth, factors.bandwidth);
    if (profile.transport) scale(profile.transport->message_gap, factors.latency);
  }
  for (models::CalibratedCurve& curve : profile.curves) {
    if (!is_of(factors, curve.between_nodes ? Links::between_nodes : Links::in_nodes)) continue;
    for (models::CurvePiece& piece : curve.pieces) {
      scale(piece.alpha, factors.latency);
      scale(piece.beta, 1 / factors.bandwidth);
    }
  }
  return profile;
}

}  // namespace paceline::simulator
