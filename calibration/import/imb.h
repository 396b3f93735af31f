// Reads the tables that the Intel MPI Benchmarks print (IMB-MPI1): collectives, such as Allreduce, and
// PingPong as messages from point to point.
//
// A table has its number of processes ("# #processes = 8"), so that a file of several makes several
// curves. The time is t_avg, the mean over the processes; PingPong has one time, half of a round trip.
// Sizes are those of a process's buffer, or of its part (mpi_collectives.h). A reduction adds what
// "MPI_Datatype for reductions" says.
// Nothing says on how many nodes the processes were. Tables of other benchmarks are left out. The format
// is that of intel/mpi-benchmarks, src_cpp/MPI1 and src_c/IMB_output.c.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_imb(std::string_view text);

// Throws InputError (with the line) if the text has no such table, if a row does not have the columns of
// its header, if a cell is no number, or after 100,000 rows. O(text).
[[nodiscard]] Imported parse_imb(std::string_view text, const std::string& file);

}  // namespace paceline::calibration
