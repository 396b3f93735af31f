// Collectives that were measured beside those that are expected.
#pragma once

#include "calibration/check/checked.h"
#include "calibration/check/evidence.h"

namespace paceline::calibration {

// Collectives of one kind over as many ranks, on clusters and with links that may not be as expected.
class ExpectedCollectives {
 public:
  // Keeps a reference to both. Throws InputError where the ranks do not fit the cluster, or neither NCCL runs
  // on it nor the profile has a curve of a library.
  ExpectedCollectives(const Expectation& expectation, const MeasuredCollective& measured);

  [[nodiscard]] CheckedCollective checked() const;
  // The root mean square of the logarithms of measured over expected times, on another cluster.
  [[nodiscard]] double distance(const models::Cluster& cluster) const;
  // The expected cluster, where the bandwidth of the links that the ranks use is multiplied by the factor.
  [[nodiscard]] models::Cluster with_bandwidth(double factor) const;

 private:
  [[nodiscard]] std::vector<Figure<Seconds>> times(const models::Cluster& cluster,
                                                   const models::Profile* profile,
                                                   const std::vector<Bytes>& sizes) const;
  [[nodiscard]] Seconds time(const models::Cluster& cluster, Bytes size) const;
  [[nodiscard]] std::vector<Bytes> sizes() const;  // that were measured

  const Expectation& expectation_;
  const MeasuredCollective& measured_;
};

}  // namespace paceline::calibration
