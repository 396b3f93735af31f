// Takes the place of mpi_transport.cc where Paceline is built without MPI.
#include "models/base/error.h"
#include "runtime/transport/mpi_transport.h"

namespace paceline::runtime {

std::unique_ptr<Transport> mpi_transport(int /*streams*/, Seconds /*patience*/) {
  throw UnavailableError(
      "this paceline was built without MPI: install libopenmpi-dev and build it again");
}

}  // namespace paceline::runtime
