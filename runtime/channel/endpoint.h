// What one rank reaches its peers by: the control channel and the data transport of its job.
#pragma once

#include "runtime/channel/channel.h"
#include "runtime/transport/transport.h"

namespace paceline::runtime {

// Does not own them.
struct Endpoint {
  Channel& channel;
  Transport& transport;

  // Leaves the job on both.
  void abort() const noexcept {
    channel.abort();
    transport.abort();
  }
};

}  // namespace paceline::runtime
