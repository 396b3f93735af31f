// A control channel by TCP, for jobs whose processes MPI does not start: on a machine with GPUs and
// without MPI, where gradients travel by NCCL.
//
// Rank 0 listens at an address that all ranks were given, and tells each where the others listen;
// then every two ranks have a connection. Nothing is encrypted, and whoever reaches the port can take
// a rank's place: it is for the network of one's own machines. A connection that does not speak the
// protocol is closed, and waited for no longer than 5 s.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "models/base/units.h"
#include "runtime/channel/channel.h"

namespace paceline::runtime {

// Where ranks meet.
struct Rendezvous {
  std::string host;  // a name or a number: of the machine that rank 0 runs on
  std::uint16_t port = 0;
  bool operator==(const Rendezvous&) const = default;
};

// "node7:29500", "10.0.0.7:29500", "[::1]:29500". Throws InputError.
[[nodiscard]] Rendezvous rendezvous_from(std::string_view text);

class TcpChannel final : public Channel {
 public:
  // Returns when all ranks, 0 to ranks - 1, are connected. The patience is for each step of this, and
  // then for each message. Throws RunError: LostRank if a rank did not come, or one that says why the
  // port cannot be used, or that ranks do not agree on how many they are.
  TcpChannel(const Rendezvous& rendezvous, int rank, int ranks, Seconds patience);
  ~TcpChannel() override;

  [[nodiscard]] int rank() const override;
  [[nodiscard]] int ranks() const override;
  void send(int to, std::span<const std::byte> message) override;
  void receive(int from, std::span<std::byte> room) override;
  void abort() noexcept override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::runtime
