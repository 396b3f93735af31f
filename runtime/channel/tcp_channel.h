// A control channel by TCP, for jobs whose processes MPI does not start: on machines without MPI. How
// ranks meet, and how safe that is, is in runtime/transport/tcp_connections.h.
#pragma once

#include <memory>

#include "models/base/units.h"
#include "runtime/channel/channel.h"
#include "runtime/transport/tcp_connections.h"

namespace paceline::runtime {

class TcpChannel final : public Channel {
 public:
  // Returns when all ranks, 0 to ranks - 1, are connected. The patience is for each step of this, and
  // then for each message. Throws as tcp::Meeting does.
  TcpChannel(const Rendezvous& rendezvous, const JobIdentity& job, int rank, int ranks,
             Seconds patience);
  // The same, by the first connections of a meeting.
  TcpChannel(tcp::Connections connections, int rank, Seconds patience);
  ~TcpChannel() override;

  [[nodiscard]] int rank() const override;
  [[nodiscard]] int ranks() const override;
  void send(int to, std::span<const std::byte> message) override;
  void receive(int from, std::span<std::byte> room) override;
  // A peer that has closed its connection is gone.
  [[nodiscard]] int lost_peer() const override;
  void abort() noexcept override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::runtime
