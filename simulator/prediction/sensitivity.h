// What a prediction depends on: the same job on a cluster one part of which is better.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "simulator/prediction/prediction.h"

namespace paceline::simulator {

// A part of a cluster that a buyer can choose.
enum class Part { nic_bandwidth, nic_latency, link_bandwidth, link_latency, compute };

// For people: "NIC bandwidth", "links in a node, latency".
[[nodiscard]] std::string_view name(Part part);
// For documents: "nic_bandwidth".
[[nodiscard]] std::string_view key(Part part);

// The parts of the job's cluster: NICs where the ranks are on several nodes, links in a node where a
// node has several ranks.
[[nodiscard]] std::vector<Part> parts_of(const PredictionRequest& request);

// The job where the part is this many times as good: bandwidths and rates times the factor, latencies
// and times divided by it.
struct BetterPart {
  Part part = Part::compute;
  double factor = 1;
  Seconds iteration;    // with the plan of the job as it is
  Seconds chosen_anew;  // with the plan that the planner then chooses for the same strategy

  // The shorter of both times.
  [[nodiscard]] Seconds least() const { return std::min(iteration, chosen_anew); }
};

// Of each part and each factor, parts first. `plan` is one that the strategy has on the job's
// cluster; where `is_fixed`, it stays in `chosen_anew`, too. All are stated values. Throws InputError
// for a cluster with a platform, and as Predictor does. Cost: two predictions without intervals for
// each part and factor.
[[nodiscard]] std::vector<BetterPart> better_parts(const PredictionRequest& request,
                                                   const models::Strategy& strategy,
                                                   const models::Plan& plan, bool is_fixed,
                                                   std::span<const double> factors);

// The one with the shortest iteration; the first of those that are as short. `better` has one at least.
[[nodiscard]] const BetterPart& most_helpful(std::span<const BetterPart> better);

}  // namespace paceline::simulator
