// A transport between processes by TCP, for jobs that MPI does not start (tcp_connections.h).
//
// Each stream has a connection of its own with each peer, so that a message which nobody receives yet
// holds up its own stream only. A message is its length, in 8 bytes, and its bytes; what the kernel
// takes at once is done when it is posted. The sizes of messages are those that Open MPI's transport
// uses between nodes; they were not measured on this one.
#pragma once

#include <memory>
#include <vector>

#include "models/base/units.h"
#include "runtime/transport/tcp_connections.h"
#include "runtime/transport/transport.h"

namespace paceline::runtime {

// The connections of rank `rank` with all `ranks`, for each stream. Throws InputError if the patience
// is not above 0.
[[nodiscard]] std::unique_ptr<Transport> tcp_transport(std::vector<tcp::Connections> streams,
                                                       int rank, int ranks, Seconds patience);

}  // namespace paceline::runtime
