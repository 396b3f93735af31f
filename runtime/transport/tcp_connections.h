// How the ranks of a job meet by TCP whose processes MPI does not start. runtime/channel/tcp_channel.h
// and runtime/transport/tcp_transport.h send their messages by the connections.
//
// Rank 0 listens at an address that all ranks were given, and tells each where the others listen; then
// every two ranks have a connection. Nobody listens at another address than that, or than the one by
// which it reaches rank 0. Ranks of one job know each other by its description and by its secret
// (tcp_handshake.h); whoever else calls is closed, and keeps nobody waiting (tcp_introductions.h). A
// job without a secret meets on loopback only.
//
// Connections, once they are made, are neither encrypted nor signed: who can change what passes
// between the machines can change what ranks say.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.h"
#include "runtime/transport/rendezvous_secret.h"
#include "runtime/transport/tcp_sockets.h"

namespace paceline::runtime {

// Where ranks meet.
struct Rendezvous {
  std::string host;  // a name or a number: of the machine that rank 0 runs on
  std::uint16_t port = 0;
  bool operator==(const Rendezvous&) const = default;
};

// "node7:29500", "10.0.0.7:29500", "[::1]:29500". Throws InputError.
[[nodiscard]] Rendezvous rendezvous_from(std::string_view text);

// What the ranks of one job have in common, and those of no other.
struct JobIdentity {
  std::string description;  // lines of "key: value": all that must be equal on all ranks
  RendezvousSecret secret = {};
};

namespace tcp {

// The ranks of a job, once all have come.
class Meeting {
 public:
  // Returns when all ranks, 0 to ranks - 1, have come. The patience is for each step, and nobody who
  // calls makes it longer. Throws on the rank that is at fault
  //  - InputError if it is of another job than rank 0, counts other ranks, speaks another protocol, has
  //    another secret, or is a rank that has come already: rank 0 refuses it and goes on;
  //  - InputError if a job without a secret is to meet beyond loopback;
  //  - LostRank if rank 0 is not reached;
  //  - RunError that says why the address cannot be used;
  //  - UnavailableError where Paceline was built without libsodium;
  // and on all ranks that have come LostRank that names those which have not.
  Meeting(const Rendezvous& rendezvous, const JobIdentity& job, int rank, int ranks,
          Seconds patience);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // The first connections. Call it once.
  [[nodiscard]] Connections first();
  // So many more connections with each peer. All ranks call it at the same point, with the same
  // number. Throws LostRank.
  [[nodiscard]] std::vector<Connections> more(int count);
  // Nobody is accepted from now on. The port is free again.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tcp
}  // namespace paceline::runtime
