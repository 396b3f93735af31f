// The control channel of a job: what ranks tell each other beside gradients. Texts, small sums and
// barriers travel on it (runtime/channel/messages.h).
//
// It is apart from the data transport, so that a job whose gradients travel by a library without
// messages (NCCL) has one, too. It moves host memory, it may be slow, and its calls block.
//
// Messages from one rank to another are received in the order in which they were sent, and a
// receive has room for exactly the message that it gets.
//
// Thread safety: one thread at a time calls one Channel. Where channel and data transport are made
// by one MPI process, one thread at a time calls either of them.
#pragma once

#include <cstddef>
#include <span>

namespace paceline::runtime {

class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;

  // Return when the memory may be used again (send) or holds the message (receive). A send may wait
  // for its receive. Throw RunError that names the peer if it is gone, or has been silent for the
  // channel's patience.
  virtual void send(int to, std::span<const std::byte> message) = 0;
  virtual void receive(int from, std::span<std::byte> room) = 0;

  // As Transport::lost_peer() says.
  [[nodiscard]] virtual int lost_peer() const { return -1; }

  // Leaves the job: peers that wait for this rank learn that it is gone. No call but the destructor
  // may follow.
  virtual void abort() noexcept = 0;
};

}  // namespace paceline::runtime
