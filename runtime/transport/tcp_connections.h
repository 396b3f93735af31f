// TCP connections between the ranks of a job whose processes MPI does not start: how they meet, and
// bytes on a connection. runtime/channel/tcp_channel.h and runtime/transport/tcp_transport.h send
// their messages by them.
//
// Rank 0 listens at an address that all ranks were given, and tells each where the others listen;
// then every two ranks have a connection. Nothing is encrypted, and whoever reaches the port can take
// a rank's place: it is for the network of one's own machines. A connection that does not speak the
// protocol is closed, and waited for no longer than 5 s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/units.h"

namespace paceline::runtime {

// Where ranks meet.
struct Rendezvous {
  std::string host;  // a name or a number: of the machine that rank 0 runs on
  std::uint16_t port = 0;
  bool operator==(const Rendezvous&) const = default;
};

// "node7:29500", "10.0.0.7:29500", "[::1]:29500". Throws InputError.
[[nodiscard]] Rendezvous rendezvous_from(std::string_view text);

namespace tcp {

// Owns a descriptor. Its reads and writes do not block.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, none)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] bool is_open() const { return descriptor_ != none; }
  // Both ends learn that nothing more comes.
  void shut_down() const noexcept;

 private:
  static constexpr int none = -1;
  int descriptor_ = none;
};

// How a wait for bytes ended. `silent`: nothing moved for as long as the patience.
enum class End { done, gone, silent };

[[nodiscard]] End write_all(const Socket& socket, std::span<const std::byte> bytes,
                            Seconds patience);
[[nodiscard]] End read_all(const Socket& socket, std::span<std::byte> bytes, Seconds patience);

// One connection with each peer, by rank; that of this rank is not open.
using Connections = std::vector<Socket>;

// The ranks of a job, once all have come.
class Meeting {
 public:
  // Returns when all ranks, 0 to ranks - 1, have come. The patience is for each step. What rank 0
  // finds wrong is thrown on all ranks that have reached it: InputError if they do not agree on how
  // many they are or two are the same rank; LostRank that names the ranks which did not come. Throws
  // LostRank if rank 0 is not reached, and RunError that says why the port cannot be used.
  Meeting(const Rendezvous& rendezvous, int rank, int ranks, Seconds patience);
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
