// A control channel over a transport of host memory, whose stream 0 is the channel's alone.
#pragma once

#include "runtime/channel/channel.h"
#include "runtime/transport/transport.h"

namespace paceline::runtime {

class TransportChannel final : public Channel {
 public:
  // The transport outlives the channel.
  explicit TransportChannel(Transport& transport) : transport_(transport) {}

  [[nodiscard]] int rank() const override { return transport_.rank(); }
  [[nodiscard]] int ranks() const override { return transport_.ranks(); }
  void send(int to, std::span<const std::byte> message) override {
    transport_.wait(transport_.post_send(0, to, message));
  }
  void receive(int from, std::span<std::byte> room) override {
    transport_.wait(transport_.post_receive(0, from, room));
  }
  [[nodiscard]] int lost_peer() const override { return transport_.lost_peer(); }
  void abort() noexcept override { transport_.abort(); }

 private:
  Transport& transport_;
};

}  // namespace paceline::runtime
