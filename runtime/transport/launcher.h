// What a launcher (mpirun, srun) tells the processes that it starts, by their environment: known
// before MPI is initialised, and without it.
#pragma once

#include <optional>

namespace paceline::runtime {

struct LaunchedRank {
  int rank = 0;
  int ranks = 1;
  int ranks_on_node = 1;  // with this one, as far as the launcher says
};

// Whether this process is one of a job's: started by mpirun, by srun, or by another PMIx launcher.
// A job of one rank counts.
[[nodiscard]] bool started_by_launcher();
// Which one, where the launcher says it (mpirun and srun do).
[[nodiscard]] std::optional<LaunchedRank> launched_rank();

}  // namespace paceline::runtime
