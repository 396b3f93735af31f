// Tests: tests/runtime/loop/messages_test.cc.
#include "runtime/transport/messages.h"

#include <cstdint>
#include <cstring>

#include "models/base/error.h"

namespace paceline::runtime {
namespace {

constexpr int stream = 0;
constexpr std::uint64_t longest_text = 1 << 26;

void send(Transport& transport, int to, std::span<const std::byte> bytes) {
  transport.wait(transport.post_send(stream, to, bytes));
}

void receive(Transport& transport, int from, std::span<std::byte> room) {
  transport.wait(transport.post_receive(stream, from, room));
}

void send_text(Transport& transport, int to, const std::string& text) {
  const std::uint64_t length = text.size();
  send(transport, to, std::as_bytes(std::span(&length, 1)));
  if (length > 0) send(transport, to, std::as_bytes(std::span(text)));
}

std::string receive_text(Transport& transport, int from) {
  std::uint64_t length = 0;
  receive(transport, from, std::as_writable_bytes(std::span(&length, 1)));
  if (length > longest_text)
    throw RunError("start the job", "rank " + std::to_string(from) + " runs another program");
  std::string text(length, '\0');
  if (length > 0) receive(transport, from, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

void broadcast(Transport& transport, std::span<std::byte> bytes) {
  // MPI counts bytes in an int; and in pieces every rank hears from rank 0 now and then.
  constexpr std::size_t piece = std::size_t{1} << 26;
  for (; bytes.size() > piece; bytes = bytes.subspan(piece))
    broadcast(transport, bytes.first(piece));
  if (bytes.empty()) return;
  if (transport.rank() != 0) return receive(transport, 0, bytes);
  for (int rank = 1; rank < transport.ranks(); ++rank) send(transport, rank, bytes);
}

std::string broadcast_text(Transport& transport, std::string text) {
  if (transport.rank() != 0) return receive_text(transport, 0);
  for (int rank = 1; rank < transport.ranks(); ++rank) send_text(transport, rank, text);
  return text;
}

std::vector<std::string> gather_texts(Transport& transport, const std::string& text) {
  if (transport.rank() != 0) {
    send_text(transport, 0, text);
    return {};
  }
  std::vector<std::string> all = {text};
  for (int rank = 1; rank < transport.ranks(); ++rank) all.push_back(receive_text(transport, rank));
  return all;
}

std::vector<float> gather(Transport& transport, std::span<const float> values) {
  if (transport.rank() != 0) {
    if (!values.empty()) send(transport, 0, std::as_bytes(values));
    return {};
  }
  std::vector<float> all(values.size() * static_cast<std::size_t>(transport.ranks()));
  std::copy(values.begin(), values.end(), all.begin());
  for (int rank = 1; rank < transport.ranks() && !values.empty(); ++rank) {
    receive(transport, rank,
            std::as_writable_bytes(std::span(all).subspan(
                values.size() * static_cast<std::size_t>(rank), values.size())));
  }
  return all;
}

void sum_over_ranks(Transport& transport, std::span<double> values) {
  if (values.empty()) return;
  if (transport.rank() != 0) {
    send(transport, 0, std::as_bytes(values));
  } else {
    std::vector<double> other(values.size());
    for (int rank = 1; rank < transport.ranks(); ++rank) {
      receive(transport, rank, std::as_writable_bytes(std::span(other)));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += other[i];
    }
  }
  broadcast(transport, std::as_writable_bytes(values));
}

}  // namespace paceline::runtime
