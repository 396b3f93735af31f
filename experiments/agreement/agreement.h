// Sets the engines beside each other: every schedule on every topology, at several ranks and sizes.
//
// SimGrid is the judge. The flow engine must agree with it to 0.5 % at every rank. Where no link is
// shared, the step engine and the flow engine must agree with it to 0.1 %.
#pragma once

#include <string>
#include <vector>

#include "experiments/agreement/topologies.h"
#include "models/collective/catalogue.h"

namespace paceline::experiments {

inline constexpr double shared_tolerance = 5e-3;
inline constexpr double unshared_tolerance = 1e-3;

// What is compared. Each list needs at least one entry.
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
  bool shares_links = false;  // for some times at which ranks are ready (prepare.h)
  // The time at which the last rank is done.
  Seconds step;
  Seconds flow;
  Seconds simgrid;
  // The largest difference of a rank from SimGrid, as a share of SimGrid's time.
  double step_difference = 0;
  double flow_difference = 0;

  [[nodiscard]] double tolerance() const {
    return shares_links ? shared_tolerance : unshared_tolerance;
  }
  [[nodiscard]] bool agrees() const {
    return flow_difference <= tolerance() && (shares_links || step_difference <= tolerance());
  }
};

// Goes through the schedules, and through the topologies for each. Our engines run as predictions
// use them, with ranks in equal positions collapsed. Throws InputError where a schedule is not over
// this many ranks or too large for SimGrid, UnavailableError where SimGrid was not built in, and
// RunError if it fails.
[[nodiscard]] std::vector<AgreementCell> compare_engines(const AgreementRequest& request);

}  // namespace paceline::experiments
