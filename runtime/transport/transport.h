// A transport moves the data of a job: messages between its ranks, point to point, on independent
// streams. What ranks say to each other beside data travels on runtime/channel/channel.h.
//
// The executor (runtime/collective/executor.h) runs any schedule on any transport. A transport
// knows how bytes get from one rank to another, and which rank is gone. Implementations: threads of
// one process (thread_transport.h), Open MPI (mpi_transport.h) and TCP (tcp_transport.h). NCCL is not one: it has no test
// of a single message, and runs on a stream of the device.
//
// Matching: messages from one rank to another on one stream are received in the order in which
// they were sent, and a receive must have room for exactly the message that it gets.
//
// A peer is gone when its transport was destroyed or aborted, or when it has been silent for the
// transport's patience: nothing has come from it while this rank asked for one of its messages.
// Every call that would wait for such a peer throws RunError that names it.
//
// Thread safety: one thread at a time calls one Transport; ranks are independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "models/base/error.h"
#include "models/collective/message_sizes.h"
#include "runtime/device/memory.h"

namespace paceline::runtime {

// What does not change in the life of a transport.
struct TransportTraits {
  std::string_view name;  // "threads", "open-mpi"
  int rank = 0;
  int ranks = 1;
  int streams = 1;                          // numbered from 0; their messages do not match
  models::MessageSizes message_sizes = {};  // the sizes of messages that are fast
  // The memory that messages may leave from and land in.
  MemoryKinds takes = {MemoryKind::host, MemoryKind::pinned};
};

class Transport {
 public:
  // A message on its way. Valid until test() or wait() has said that it is done. Slot 0 is no
  // message: it was done when it was posted, and test() of it is true, always.
  struct Request {
    std::uint32_t slot = 0;
  };

  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual const TransportTraits& traits() const = 0;
  [[nodiscard]] std::string_view name() const { return traits().name; }
  [[nodiscard]] int rank() const { return traits().rank; }
  [[nodiscard]] int ranks() const { return traits().ranks; }
  [[nodiscard]] int streams() const { return traits().streams; }
  [[nodiscard]] models::MessageSizes message_sizes() const { return traits().message_sizes; }

  // Start a message; the memory belongs to the transport until it is done. Neither blocks, nor
  // allocates once as many messages have been in flight as ever will be.
  [[nodiscard]] virtual Request post_send(int stream, int to,
                                          std::span<const std::byte> message) = 0;
  [[nodiscard]] virtual Request post_receive(int stream, int from, std::span<std::byte> room) = 0;

  // Whether the message is done; makes progress on all of them. Throws RunError that names the peer
  // if it is gone.
  [[nodiscard]] virtual bool test(Request request) = 0;
  // Returns when one of the messages is done; test() then says which. Spins for a while, then gives
  // up the core. Throws RunError that names the peer of the first that is gone.
  virtual void wait_any(std::span<const Request> requests) = 0;
  // Returns when the message is done. Throws as wait_any() does.
  void wait(Request request) {
    while (!test(request)) wait_any({&request, 1});
  }

  // The first peer that is known to be gone, or -1. Does not block, and any thread may ask. It is for
  // whoever waits for peers by other means than messages of this transport. A transport between
  // processes may not know, where the launcher ends the job of a process that fails.
  [[nodiscard]] virtual int lost_peer() const { return -1; }

  // Leaves the job: peers learn that this rank is gone, and nothing is read from or written to the
  // memory of its messages after this. No call but the destructor may follow.
  virtual void abort() noexcept = 0;

  // Whether the library under the transport has an all-reduce of its own.
  [[nodiscard]] virtual bool has_all_reduce() const { return false; }
  // Runs the library's all-reduce on host memory: the bucket holds the sum over ranks 0 ..
  // ranks - 1 when it returns. These ranks call it in the same order, and the others do not. It has
  // no patience: the launcher has to notice a rank that is gone.
  virtual void all_reduce(std::span<float> /*bucket*/, int /*ranks*/) {
    PACELINE_ASSERT(false, "the transport has an all-reduce of its own");
  }
};

}  // namespace paceline::runtime
