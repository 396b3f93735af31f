// The names that MPI benchmarks give to collectives. Private to the readers of OSU's and of Intel's.
#pragma once

#include <array>
#include <string_view>

#include "models/collective/catalogue.h"

namespace paceline::calibration {

struct MpiCollective {
  models::Collective collective;
  std::string_view imb;  // "# Benchmarking Allgather"
  std::string_view osu;  // "# OSU MPI Allgather Latency Test"; empty where it has none
  // Sizes are of one rank's part, or in an all-to-all of the message to one rank; the bucket has as many
  // of these as there are ranks.
  bool has_sizes_of_parts;
};

inline constexpr std::array mpi_collectives = {
    MpiCollective{models::Collective::all_reduce, "Allreduce", "Allreduce", false},
    MpiCollective{models::Collective::all_gather, "Allgather", "Allgather", true},
    MpiCollective{models::Collective::reduce_scatter, "Reduce_scatter", "Reduce_scatter", false},
    MpiCollective{models::Collective::broadcast, "Bcast", "Broadcast", false},
    MpiCollective{models::Collective::reduce, "Reduce", "Reduce", false},
    MpiCollective{models::Collective::gather, "Gather", "Gather", true},
    MpiCollective{models::Collective::scatter, "Scatter", "Scatter", true},
    MpiCollective{models::Collective::all_to_all, "Alltoall", "All-to-All Personalized Exchange",
                  true},
    MpiCollective{models::Collective::neighbour_exchange, "Sendrecv", "", true}};

}  // namespace paceline::calibration
