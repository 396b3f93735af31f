// The options that say how ranks differ, and whom an iteration waits for.
#pragma once

#include <optional>

#include "models/cluster/cluster.h"
#include "simulator/question/question.h"
#include "simulator/straggler/monte_carlo.h"

namespace paceline::job {

// The simulation of stragglers that the options ask for; nothing if none is given. Throws
// InputError that names the option.
[[nodiscard]] std::optional<simulator::MonteCarloRequest> load_stragglers(
    const simulator::StragglerTexts& options, int ranks);
// Slows the nodes that --slow-node names, which must hold some of the ranks. Throws InputError.
void slow_nodes(models::Cluster& cluster, const simulator::StragglerTexts& options, int ranks);

}  // namespace paceline::job
