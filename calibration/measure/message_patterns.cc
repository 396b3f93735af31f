// Tests: tests/calibration/measure_test.cc.
#include "calibration/measure/message_patterns.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "models/base/to_size.h"
#include "runtime/channel/messages.h"
#include "runtime/channel/transport_channel.h"

namespace paceline::calibration {
namespace {

using Clock = std::chrono::steady_clock;
using runtime::Transport;

constexpr int stream = 0;
// Steps of an exchange before those that are timed. Ranks leave a barrier apart by what a message
// takes, which the first steps wait for. By that much each rank in turn is then ahead for a step,
// until it has gone around; so steps are timed in whole rounds.
constexpr int settling_steps = 2;
// Weight of a partial-rank all-reduce in the time budget (a full one has 1).
constexpr double weight_of_fewer = 0.25;

std::span<std::byte> part(runtime::Memory& memory, std::int64_t bytes) {
  return memory.bytes().first(to_size(bytes));
}

void add_all_reduces(const Transport& transport, const NodeMap& nodes, std::vector<Pattern>& list) {
  const int all = transport.ranks();
  std::vector<int> counts;
  for (int ranks = 2; ranks < all; ranks *= 2) counts.push_back(ranks);
  counts.push_back(all);
  for (const int ranks : counts) {
    std::vector<int> first(to_size(ranks));
    std::iota(first.begin(), first.end(), 0);
    const bool between =
        std::ranges::any_of(first, [&](int r) { return nodes.node[to_size(r)] > 0; });
    list.push_back({fmt::format("all-reduce of {}, {} ranks", transport.name(), ranks),
                    models::CurveKind::all_reduce, between, ranks,
                    Ring(std::move(first), transport.rank()), ranks < all ? weight_of_fewer : 1});
  }
}

}  // namespace

std::vector<Pattern> message_patterns(const Transport& transport, const NodeMap& nodes) {
  std::vector<Pattern> list;
  // `ranks` take part in all, and `mine` of them in this rank's ring.
  const auto add = [&](bool between, const std::vector<int>& ranks, std::vector<int> mine) {
    if (ranks.size() < 2) return;
    const int count = static_cast<int>(ranks.size());
    const char* where = between ? "between nodes" : "within a node";
    list.push_back({fmt::format("point to point {}", where), models::CurveKind::point_to_point,
                    between, 2, Ring({ranks[0], ranks[1]}, transport.rank())});
    list.push_back({fmt::format("exchange of {} {}", ranks.size(), where),
                    models::CurveKind::exchange, between, count,
                    Ring(std::move(mine), transport.rank())});
  };
  add(true, nodes.leaders(), nodes.leaders_beside(transport.rank()));
  add(false, nodes.ranks_of(0), nodes.ranks_of(0));
  if (transport.has_all_reduce() && transport.ranks() > 1) add_all_reduces(transport, nodes, list);
  return list;
}

void barrier(Transport& transport) {
  runtime::TransportChannel channel(transport);
  runtime::barrier(channel);
}

double agreed(Transport& transport, double value) {
  runtime::TransportChannel channel(transport);
  runtime::broadcast(channel, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Ring::Ring(std::vector<int> members, int rank) : ranks(std::move(members)) {
  const auto it = std::find(ranks.begin(), ranks.end(), rank);
  if (it != ranks.end()) mine = static_cast<int>(it - ranks.begin());
}

int Ring::after(int by) const {
  return ranks[to_size((mine + by) % size())];
}

int Ring::before(int by) const {
  return ranks[to_size((mine + size() - by) % size())];
}

PatternPlayer::PatternPlayer(Transport& transport, std::int64_t largest,
                             std::int64_t largest_all_reduce)
    : transport_(transport),
      sent_(runtime::host_memory(to_size(std::max(largest, largest_all_reduce)))),
      received_(runtime::host_memory(to_size(largest))) {
  std::ranges::fill(sent_.bytes(), std::byte{0});  // which all-reduces leave as they are
}

double PatternPlayer::once(const Pattern& pattern, std::int64_t bytes) {
  if (pattern.kind == models::CurveKind::exchange)
    return exchange(pattern.ring, bytes, exchange_steps);
  if (pattern.kind == models::CurveKind::point_to_point) return ping(pattern.ring, bytes);
  const Clock::time_point start = Clock::now();
  all_reduce(pattern.ring, bytes);
  return seconds_since(start);
}

double PatternPlayer::ping(const Ring& pair, std::int64_t bytes) {
  if (pair.mine < 0) return 0;
  const int peer = pair.after(1);
  const Clock::time_point start = Clock::now();
  if (pair.mine == 0) {
    send(peer, bytes);
    receive(peer, bytes);
  } else {
    receive(peer, bytes);
    send(peer, bytes);
  }
  return seconds_since(start) / 2;
}

double PatternPlayer::exchange(const Ring& ring, std::int64_t bytes, int least_steps, int by) {
  if (ring.mine < 0) return 0;
  const int steps = (least_steps + ring.size() - 1) / ring.size() * ring.size();
  Clock::time_point start;
  for (int step = -settling_steps; step < steps; ++step) {
    if (step == 0) start = Clock::now();
    const std::array requests = {
        transport_.post_receive(stream, ring.before(by), part(received_, bytes)),
        transport_.post_send(stream, ring.after(by), part(sent_, bytes))};
    for (const Transport::Request request : requests) transport_.wait(request);
  }
  return seconds_since(start) / steps;
}

std::vector<double> PatternPlayer::fan_out(const Ring& ring, std::int64_t bytes, int receivers) {
  std::vector<double> times(to_size(receivers));
  if (ring.mine < 0 || ring.mine > receivers) return times;
  if (ring.mine > 0) {
    receive(ring.ranks[0], bytes);
    send(ring.ranks[0], 1);
    return times;
  }
  const Clock::time_point start = Clock::now();
  std::vector<Transport::Request> answers;
  std::vector<Transport::Request> sends;
  for (int i = 0; i < receivers; ++i)
    answers.push_back(transport_.post_receive(stream, ring.after(i + 1),
                                              received_.bytes().subspan(to_size(i), 1)));
  for (int i = 0; i < receivers; ++i)
    sends.push_back(transport_.post_send(stream, ring.after(i + 1), part(sent_, bytes)));
  int left = receivers;
  while (left > 0) {
    std::vector<Transport::Request> open;
    for (int i = 0; i < receivers; ++i) {
      if (times[to_size(i)] > 0) continue;
      if (transport_.test(answers[to_size(i)])) {
        times[to_size(i)] = seconds_since(start);
        --left;
      } else {
        open.push_back(answers[to_size(i)]);
      }
    }
    if (!open.empty()) transport_.wait_any(open);
  }
  for (const Transport::Request request : sends) transport_.wait(request);
  return times;
}

std::vector<double> PatternPlayer::stream_of(const Ring& ring, std::int64_t bytes, int count) {
  std::vector<double> came(to_size(count));
  if (ring.mine < 0) return came;
  std::array<std::array<Transport::Request, 2>, in_flight> requests;
  const auto post = [&](int message) {
    requests[to_size(message % in_flight)] = {
        transport_.post_receive(stream, ring.before(1), part(received_, bytes)),
        transport_.post_send(stream, ring.after(1), part(sent_, bytes))};
  };
  const Clock::time_point start = Clock::now();
  for (int message = 0; message < std::min(in_flight, count); ++message) post(message);
  for (int message = 0; message < count; ++message) {
    const auto [received, sent] = requests[to_size(message % in_flight)];
    transport_.wait(received);
    came[to_size(message)] = seconds_since(start);
    transport_.wait(sent);
    if (message + in_flight < count) post(message + in_flight);
  }
  return came;
}

void PatternPlayer::all_reduce(const Ring& ring, std::int64_t bytes) {
  if (ring.mine < 0) return;
  const auto elements = to_size(bytes) / sizeof(float);
  transport_.all_reduce({reinterpret_cast<float*>(sent_.bytes().data()), elements}, ring.size());
}

double PatternPlayer::flood(const Ring& pair, std::int64_t bytes, int count) {
  if (pair.mine < 0) return 0;
  const int peer = pair.after(1);
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < count; ++i) pair.mine == 0 ? send(peer, bytes) : receive(peer, bytes);
  pair.mine == 0 ? receive(peer, 1) : send(peer, 1);
  return seconds_since(start);
}

void PatternPlayer::send(int to, std::int64_t bytes) {
  transport_.wait(transport_.post_send(stream, to, part(sent_, bytes)));
}

void PatternPlayer::receive(int from, std::int64_t bytes) {
  transport_.wait(transport_.post_receive(stream, from, part(received_, bytes)));
}

}  // namespace paceline::calibration
