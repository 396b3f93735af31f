// Tests: tests/simulator/link_factors_test.cc.
#include "simulator/cost/link_factors.h"

#include <optional>

#include "models/base/error.h"

namespace paceline::simulator {
namespace {

template <class Q>
void scale(Figure<Q>& figure, double factor) {
  figure.value *= factor;
  figure.low *= factor;
  figure.high *= factor;
}

template <class Q>
void scale(std::optional<Figure<Q>>& figure, double factor) {
  if (figure) scale(*figure, factor);
}

void scale(models::Link& link, const LinkFactors& factors) {
  scale(link.line_rate, factors.bandwidth);
  scale(link.bandwidth, factors.bandwidth);
  scale(link.latency, factors.latency);
  for (auto& [ranks, bandwidth] : link.bandwidth_by_ranks) scale(bandwidth, factors.bandwidth);
}

}  // namespace

models::Cluster with_links(models::Cluster cluster, const LinkFactors& factors) {
  if (factors == LinkFactors{}) return cluster;
  if (cluster.platform != nullptr)
    throw InputError("a platform has links of its own", "change them in its file");
  scale(cluster.intra, factors);
  scale(cluster.nic, factors);
  scale(cluster.hop_latency, factors.latency);
  cluster.fabric.hop_latency *= factors.latency;
  if (cluster.host) {
    scale(cluster.host->crossing, factors.bandwidth);
    scale(cluster.host->uplink, factors.bandwidth);
    if (cluster.host->lane) scale(*cluster.host->lane, factors);
  }
  return cluster;
}

models::Profile with_links(models::Profile profile, const LinkFactors& factors) {
  if (factors == LinkFactors{}) return profile;
  scale(profile.intra_latency, factors.latency);
  scale(profile.nic_latency, factors.latency);
  scale(profile.intra_bandwidth, factors.bandwidth);
  scale(profile.nic_bandwidth, factors.bandwidth);
  if (profile.transport) scale(profile.transport->message_gap, factors.latency);
  for (models::CalibratedCurve& curve : profile.curves) {
    for (models::CurvePiece& piece : curve.pieces) {
      scale(piece.alpha, factors.latency);
      scale(piece.beta, 1 / factors.bandwidth);
    }
  }
  return profile;
}

}  // namespace paceline::simulator
