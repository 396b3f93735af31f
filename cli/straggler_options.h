// The options that say how ranks differ, and whom an iteration waits for.
#pragma once

#include <optional>
#include <string>

#include "cli/command_line.h"
#include "models/cluster/cluster.h"
#include "simulator/straggler/monte_carlo.h"

namespace paceline::cli {

// As typed; empty is "not given".
struct StragglerOptions {
  std::string spread;
  std::string slow_ranks;
  std::string slow_nodes;
  std::string backup;
  std::string iterations;
  std::string seed;
};

void add_straggler_options(Command& command, StragglerOptions& options);

// Nothing if no option is given. Throws InputError that names the option.
[[nodiscard]] std::optional<simulator::MonteCarloRequest> load_stragglers(
    const StragglerOptions& options, int ranks);
// Slows the nodes that --slow-node names, which must hold some of the ranks. Throws InputError.
void slow_nodes(models::Cluster& cluster, const StragglerOptions& options, int ranks);

}  // namespace paceline::cli
