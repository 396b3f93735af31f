// Reads what a launcher (mpirun, srun) tells the processes that it starts in their environment. It
// is known before MPI is initialised, and without MPI.
#pragma once

#include <optional>

namespace paceline::runtime {

struct LaunchedRank {
  int rank = 0;
  int ranks = 1;
  int ranks_on_node = 1;  // this rank included; 1 where the launcher does not say
  int rank_on_node = 0;   // from 0; 0 where the launcher does not say
};

// Returns whether this process is a rank of a job that mpirun, srun or another PMIx launcher has
// started. A job of one rank counts.
[[nodiscard]] bool started_by_launcher();
// Returns the rank that this process is, where the launcher says it, as mpirun and srun do.
[[nodiscard]] std::optional<LaunchedRank> launched_rank();

}  // namespace paceline::runtime
