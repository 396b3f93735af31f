// The engines beside each other: every schedule on every topology, at several ranks and sizes.
//
// SimGrid is the judge. What the engines owe it: the flow engine 0.5 %, rank by rank, and where no
// link is shared the step engine and the flow engine 0.1 %.
#pragma once

#include <string>
#include <vector>

#include "experiments/agreement/topologies.h"
#include "models/collective/catalogue.h"

namespace paceline::experiments {

inline constexpr double shared_tolerance = 5e-3;
inline constexpr double unshared_tolerance = 1e-3;

// At least one of each.
struct AgreementRequest {
  std::vector<const models::CollectiveAlgorithm*> schedules;  // built with their defaults
  std::vector<const Topology*> topologies;
  std::vector<int> ranks;
  std::vector<Bytes> sizes;
};

struct AgreementCell {
  std::string schedule;
  std::string topology;
  int ranks = 0;
  Bytes size;
  bool shares_links = false;  // whenever ranks are ready (prepare.h)
  // When the last rank is done.
  Seconds step;
  Seconds flow;
  Seconds simgrid;
  // Of the rank that is the most apart from SimGrid, relative to SimGrid's time.
  double step_difference = 0;
  double flow_difference = 0;

  [[nodiscard]] double tolerance() const {
    return shares_links ? shared_tolerance : unshared_tolerance;
  }
  [[nodiscard]] bool agrees() const {
    return flow_difference <= tolerance() && (shares_links || step_difference <= tolerance());
  }
};

// Schedule by schedule, topology by topology. Ours are the engines as predictions use them, with
// ranks in equal positions collapsed. Throws InputError where a schedule is not over so many ranks
// or too large for SimGrid, UnavailableError where that was not built in, RunError if it fails.
[[nodiscard]] std::vector<AgreementCell> compare_engines(const AgreementRequest& request);

}  // namespace paceline::experiments
