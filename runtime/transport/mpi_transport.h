// Messages between processes that mpirun or srun has started, by Open MPI.
#pragma once

#include <memory>

#include "models/base/units.h"
#include "runtime/transport/transport.h"

namespace paceline::runtime {

// Initialises MPI, unless it is already. Collective: every process of the job calls it once, with
// as many streams. MPI settings that the user has not chosen are set in the environment first
// (mpi_transport.cc lists them with their reasons).
//
// MPI is initialised for one thread at a time (MPI_THREAD_SERIALIZED): one thread may make the
// transport and another drive it, if they are synchronised. More (MPI_THREAD_MULTIPLE) would take
// a lock for each message.
//
// The destructor finalizes MPI if the factory initialised it, and waits for all ranks in that; but
// after abort(), after a RunError of this transport, or while an exception passes it leaves MPI
// as it is: a peer may never come. The process should then exit with code 1 soon, upon which
// the launcher ends the others.
//
// Throws UnavailableError if Paceline was built without MPI, RunError if MPI cannot be initialised,
// InputError unless there is at least one stream and patience is positive.
[[nodiscard]] std::unique_ptr<Transport> mpi_transport(int streams = 1,
                                                       Seconds patience = Seconds{300});

}  // namespace paceline::runtime
