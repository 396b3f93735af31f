// The question that a prediction answers: a network on a cluster, with options.
#pragma once

#include <cstdint>
#include <optional>

#include "models/cluster/cluster.h"
#include "models/network/work.h"
#include "models/profile/profile.h"
#include "simulator/iteration/sampled_interval.h"
#include "simulator/iteration/timing_method.h"
#include "simulator/prediction/prediction_options.h"
#include "simulator/straggler/monte_carlo.h"

namespace paceline::simulator {

struct PredictionRequest : PredictionOptions {
  const models::NetworkWork& network;
  const models::Cluster& cluster;
  // Calibrated figures, which take the place of the cluster's. May be null.
  const models::Profile* profile = nullptr;
  int ranks = 1;  // must fit the cluster
  models::WireType wire = models::WireType::fp32;
  Bytes stored_sample{0};  // bytes of one sample on storage
  // With a bounded time budget, rows that would take long are timed by the step engine in place of the
  // flow engine where that is possible, and else throw TooManyMessages.
  TimeBudget time_budget = TimeBudget::unlimited;
  // Also simulates iterations with stragglers; thresholds are chosen without them.
  std::optional<MonteCarloRequest> stragglers = {};
  std::uint64_t sampling_seed = simulator::sampling_seed;  // of intervals (sampled_interval.h)

  // The same job on another cluster with another profile, which may be null. Stragglers, which no
  // question about a cluster asks for, are left out.
  [[nodiscard]] PredictionRequest on(const models::Cluster& other,
                                     const models::Profile* other_profile) const {
    return {*this,         network,     other, other_profile, ranks, wire,
            stored_sample, time_budget, {},    sampling_seed};
  }
};

// The number of ranks that efficiencies are against by default: one full node, or 1 rank where the
// ranks do not fill a node.
[[nodiscard]] int baseline_ranks(const models::Cluster& cluster, int ranks);

// Throws InputError if the ranks do not fit the cluster or the batch is not positive, or if slow or
// backup ranks are not among the ranks.
void check(const PredictionRequest& request);

}  // namespace paceline::simulator
