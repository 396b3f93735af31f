// The DAG of an iteration as a graph of other programs: what `paceline show dag` prints.
#pragma once

#include <string>

#include "cli/job/job.h"
#include "simulator/iteration/task_graph.h"

namespace paceline::job {

// The graph of the job's one plan on this many ranks, with its critical path. Throws InputError that names
// the option where the job has several plans, or where the memory of a device does not hold it.
[[nodiscard]] std::string dag_text(const Job& job, int ranks, simulator::GraphFormat format);

}  // namespace paceline::job
