// This process as a rank of a job that mpirun or srun has started: a control channel and a data
// transport by Open MPI.
#pragma once

#include <memory>

#include "models/base/units.h"
#include "runtime/channel/endpoint.h"
#include "runtime/channel/transport_channel.h"

namespace paceline::runtime {

class MpiJob {
 public:
  // Initialises MPI as mpi_transport() does, with the same errors, and with a communicator of the
  // channel's own. Collective.
  MpiJob(int streams, Seconds patience);

  [[nodiscard]] Endpoint endpoint() { return {channel_, *data_}; }

 private:
  std::unique_ptr<Transport> data_;
  std::unique_ptr<Transport> control_;
  TransportChannel channel_;
};

}  // namespace paceline::runtime
