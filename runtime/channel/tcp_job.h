// This process as a rank of a job whose processes find each other by TCP: a control channel and a
// data transport without MPI.
#pragma once

#include <memory>

#include "models/base/units.h"
#include "runtime/channel/endpoint.h"
#include "runtime/channel/tcp_channel.h"

namespace paceline::runtime {

// Where a rank stands among those of its machine.
struct PlaceOnNode {
  int rank = 0;
  int ranks = 1;
};

class TcpJob {
 public:
  // Returns when all ranks have come. Throws as tcp::Meeting does.
  TcpJob(const Rendezvous& rendezvous, const JobIdentity& job, int rank, int ranks,
         Seconds patience);

  // Finds the ranks on this rank's machine by the names of all machines. Collective.
  [[nodiscard]] PlaceOnNode place_on_node();
  // Connects the streams of the data transport, after which nobody can come any more. Collective;
  // call it once. Throws InputError if ranks ask for different numbers of streams.
  void open_streams(int streams);

  [[nodiscard]] Channel& channel() { return channel_; }
  // After open_streams().
  [[nodiscard]] Endpoint endpoint() { return {channel_, *data_}; }

 private:
  tcp::Meeting meeting_;
  TcpChannel channel_;
  std::unique_ptr<Transport> data_;
  Seconds patience_;
};

}  // namespace paceline::runtime
