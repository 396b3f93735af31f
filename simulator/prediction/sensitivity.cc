// Tests: tests/simulator/sensitivity_test.cc.
#include "simulator/prediction/sensitivity.h"

#include <algorithm>
#include <array>
#include <optional>

#include "models/base/error.h"
#include "simulator/cost/device_factor.h"
#include "simulator/cost/link_factors.h"

namespace paceline::simulator {
namespace {

struct NamedPart {
  Part part;
  std::string_view name;
  std::string_view key;
};

constexpr std::array parts = {
    NamedPart{Part::nic_bandwidth, "NIC bandwidth", "nic_bandwidth"},
    NamedPart{Part::nic_latency, "NIC latency", "nic_latency"},
    NamedPart{Part::link_bandwidth, "bandwidth in a node", "link_bandwidth"},
    NamedPart{Part::link_latency, "latency in a node", "link_latency"},
    NamedPart{Part::compute, "compute", "compute"},
};

const NamedPart& named(Part part) {
  for (const NamedPart& entry : parts) {
    if (entry.part == part) return entry;
  }
  PACELINE_ASSERT(false, "every part has a name");
}

LinkFactors link_factors(Part part, double factor) {
  switch (part) {
    case Part::nic_bandwidth:
      return {.bandwidth = factor, .latency = 1, .links = Links::between_nodes};
    case Part::nic_latency:
      return {.bandwidth = 1, .latency = 1 / factor, .links = Links::between_nodes};
    case Part::link_bandwidth:
      return {.bandwidth = factor, .latency = 1, .links = Links::in_nodes};
    case Part::link_latency:
      return {.bandwidth = 1, .latency = 1 / factor, .links = Links::in_nodes};
    case Part::compute:
      break;
  }
  return {};
}

template <class ClusterOrProfile>
ClusterOrProfile with_better(const ClusterOrProfile& of, Part part, double factor) {
  if (part == Part::compute) return with_device(of, factor);
  return with_links(of, link_factors(part, factor));
}

}  // namespace

std::string_view name(Part part) {
  return named(part).name;
}

std::string_view key(Part part) {
  return named(part).key;
}

std::vector<Part> parts_of(const PredictionRequest& request) {
  const int in_node = request.cluster.ranks_per_node;
  const bool is_on_nodes = request.ranks > in_node && request.cluster.has_nic();
  const bool has_links = request.ranks > 1 && in_node > 1;
  std::vector<Part> of_job;
  for (const NamedPart& entry : parts) {
    const bool is_nic = entry.part == Part::nic_bandwidth || entry.part == Part::nic_latency;
    const bool is_link = entry.part == Part::link_bandwidth || entry.part == Part::link_latency;
    if ((is_nic && !is_on_nodes) || (is_link && !has_links)) continue;
    of_job.push_back(entry.part);
  }
  return of_job;
}

std::vector<BetterPart> better_parts(const PredictionRequest& request,
                                     const models::Strategy& strategy, const models::Plan& plan,
                                     bool is_fixed, std::span<const double> factors) {
  std::vector<BetterPart> better;
  for (const Part part : parts_of(request)) {
    for (const double factor : factors) {
      const models::Cluster cluster = with_better(request.cluster, part, factor);
      std::optional<models::Profile> profile;
      if (request.profile != nullptr) profile = with_better(*request.profile, part, factor);
      Predictor predictor(request.on(cluster, profile ? &*profile : nullptr));
      const Seconds same = predictor.run(plan).steady.period;
      better.push_back({part, factor, same, is_fixed ? same : predictor.iteration(strategy)});
    }
  }
  return better;
}

const BetterPart& most_helpful(std::span<const BetterPart> better) {
  PACELINE_ASSERT(!better.empty(), "a cluster has a part that can be better");
  return *std::min_element(
      better.begin(), better.end(),
      [](const BetterPart& a, const BetterPart& b) { return a.least() < b.least(); });
}

}  // namespace paceline::simulator
