// Tests: tests/runtime/mpi_executor_test.cc.
#include "runtime/channel/mpi_job.h"

#include "runtime/transport/mpi_transport.h"

namespace paceline::runtime {

MpiJob::MpiJob(int streams, Seconds patience)
    : data_(mpi_transport(streams, patience)),
      control_(mpi_transport(1, patience)),
      channel_(*control_) {}

}  // namespace paceline::runtime
