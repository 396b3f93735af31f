// A transport that passes everything on to another one and writes down what its rank sends and
// lands, in order.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/transport/transport.h"

namespace paceline::test {

class RecordingTransport final : public runtime::Transport {
 public:
  // A send that the rank posted, or a receive that the transport has said to be done.
  struct Event {
    bool is_send = false;
    int peer = 0;
    std::size_t bytes = 0;
    bool operator==(const Event&) const = default;
  };

  RecordingTransport(std::unique_ptr<runtime::Transport> inner,
                     const models::MessageSizes& message_sizes)
      : inner_(std::move(inner)), traits_(inner_->traits()) {
    traits_.message_sizes = message_sizes;
  }

  // Returns the events since the last call, in order, and forgets them.
  [[nodiscard]] std::vector<Event> take_events() { return std::exchange(events_, {}); }

  [[nodiscard]] const runtime::TransportTraits& traits() const override { return traits_; }

  [[nodiscard]] Request post_send(int stream, int to, std::span<const std::byte> message) override {
    events_.push_back({.is_send = true, .peer = to, .bytes = message.size()});
    return posted({inner_->post_send(stream, to, message), events_.back(), true});
  }
  [[nodiscard]] Request post_receive(int stream, int from, std::span<std::byte> room) override {
    const Event landing{.is_send = false, .peer = from, .bytes = room.size()};
    return posted({inner_->post_receive(stream, from, room), landing, false});
  }
  [[nodiscard]] bool test(Request request) override {
    Posted& posted = posted_[request.slot - 1];
    if (!inner_->test(posted.inner)) return false;
    if (!posted.is_send) events_.push_back(posted.event);
    return true;
  }
  void wait_any(std::span<const Request> requests) override {
    std::vector<Request> inner;
    for (const Request request : requests) inner.push_back(posted_[request.slot - 1].inner);
    inner_->wait_any(inner);
  }
  void abort() noexcept override { inner_->abort(); }

 private:
  struct Posted {
    Request inner;
    Event event;
    bool is_send = false;
  };

  // Numbers requests anew, so that one that was done when it was posted is asked about too.
  Request posted(const Posted& made) {
    posted_.push_back(made);
    return {static_cast<std::uint32_t>(posted_.size())};
  }

  std::unique_ptr<runtime::Transport> inner_;
  runtime::TransportTraits traits_;
  std::vector<Event> events_;
  std::vector<Posted> posted_;  // request i + 1
};

}  // namespace paceline::test
