// Tests: tests/runtime/channel/messages_test.cc.
#include "runtime/channel/messages.h"

#include <cstdint>
#include <cstring>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::runtime {
namespace {

constexpr std::uint64_t longest_text = 1 << 26;

}  // namespace

void send_text(Channel& channel, int to, const std::string& text) {
  const std::uint64_t length = text.size();
  channel.send(to, std::as_bytes(std::span(&length, 1)));
  if (length > 0) channel.send(to, std::as_bytes(std::span(text)));
}

std::string receive_text(Channel& channel, int from) {
  std::uint64_t length = 0;
  channel.receive(from, std::as_writable_bytes(std::span(&length, 1)));
  if (length > longest_text)
    throw RunError("start the job", "rank " + std::to_string(from) + " runs another program");
  std::string text(length, '\0');
  if (length > 0) channel.receive(from, std::as_writable_bytes(std::span(text)));
  return text;
}

void broadcast(Channel& channel, std::span<std::byte> bytes) {
  // In pieces, because MPI counts bytes in an int, and so that every rank hears from rank 0 now and
  // then while it waits for its turn.
  constexpr std::size_t piece = std::size_t{1} << 26;
  for (; bytes.size() > piece; bytes = bytes.subspan(piece)) broadcast(channel, bytes.first(piece));
  if (bytes.empty()) return;
  if (channel.rank() != 0) return channel.receive(0, bytes);
  for (int rank = 1; rank < channel.ranks(); ++rank) channel.send(rank, bytes);
}

std::string broadcast_text(Channel& channel, std::string text) {
  if (channel.rank() != 0) return receive_text(channel, 0);
  for (int rank = 1; rank < channel.ranks(); ++rank) send_text(channel, rank, text);
  return text;
}

std::vector<std::string> gather_texts(Channel& channel, const std::string& text) {
  if (channel.rank() != 0) {
    send_text(channel, 0, text);
    return {};
  }
  std::vector<std::string> all = {text};
  for (int rank = 1; rank < channel.ranks(); ++rank) all.push_back(receive_text(channel, rank));
  return all;
}

std::vector<float> gather(Channel& channel, std::span<const float> values) {
  if (channel.rank() != 0) {
    if (!values.empty()) channel.send(0, std::as_bytes(values));
    return {};
  }
  std::vector<float> all(values.size() * to_size(channel.ranks()));
  std::copy(values.begin(), values.end(), all.begin());
  for (int rank = 1; rank < channel.ranks() && !values.empty(); ++rank) {
    channel.receive(rank, std::as_writable_bytes(std::span(all).subspan(
                              values.size() * to_size(rank), values.size())));
  }
  return all;
}

void sum_over_ranks(Channel& channel, std::span<double> values) {
  if (values.empty()) return;
  if (channel.rank() != 0) {
    channel.send(0, std::as_bytes(values));
  } else {
    std::vector<double> other(values.size());
    for (int rank = 1; rank < channel.ranks(); ++rank) {
      channel.receive(rank, std::as_writable_bytes(std::span(other)));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += other[i];
    }
  }
  broadcast(channel, std::as_writable_bytes(values));
}

void barrier(Channel& channel) {
  double nothing = 0;
  sum_over_ranks(channel, {&nothing, 1});
}

}  // namespace paceline::runtime
