// The options that say how ranks differ, and whom an iteration waits for.
#pragma once

#include <optional>
#include <string>

#include "models/cluster/cluster.h"
#include "simulator/straggler/monte_carlo.h"

namespace paceline::job {

// As typed; an empty text is an option that is not given.
struct StragglerOptions {
  std::string spread;
  std::string slow_ranks;
  std::string slow_nodes;
  std::string backup;
  std::string iterations;
  std::string seed;
};

// The simulation of stragglers that the options ask for; nothing if none is given. Throws
// InputError that names the option.
[[nodiscard]] std::optional<simulator::MonteCarloRequest> load_stragglers(
    const StragglerOptions& options, int ranks);
// Slows the nodes that --slow-node names, which must hold some of the ranks. Throws InputError.
void slow_nodes(models::Cluster& cluster, const StragglerOptions& options, int ranks);

}  // namespace paceline::job
