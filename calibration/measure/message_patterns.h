// Patterns of messages between ranks, and how long each takes: what the measurements of message
// times and links are made of.
//
// Messages travel as the executor's do: posted on one stream of the transport that will run the
// plan, received first, and waited for as the executor waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "calibration/measure/node_map.h"
#include "models/profile/profile.h"
#include "runtime/device/memory.h"
#include "runtime/transport/transport.h"

namespace paceline::calibration {

// Every pattern is repeated so often at least.
inline constexpr int least_repetitions = 3;
// The least number of steps of an exchange in a row.
inline constexpr int exchange_steps = 8;

// Waits for all ranks, on the transport that is measured, so that no other message comes between.
void barrier(runtime::Transport& transport);
// The value of rank 0, on all ranks.
[[nodiscard]] double agreed(runtime::Transport& transport, double value);
// Seconds from `start` until now.
[[nodiscard]] double seconds_since(std::chrono::steady_clock::time_point start);

// The ranks that take part in a pattern, in the order in which they pass messages on.
struct Ring {
  std::vector<int> ranks;
  int mine = -1;  // my place; -1 if I only wait

  Ring(std::vector<int> members, int rank);
  [[nodiscard]] int size() const { return static_cast<int>(ranks.size()); }
  // The rank this many places after mine, and before it.
  [[nodiscard]] int after(int by) const;
  [[nodiscard]] int before(int by) const;
};

// A pattern that is timed by message size.
struct Pattern {
  std::string what;
  models::CurveKind kind;
  bool between_nodes;
  int ranks;  // that take part
  Ring ring;
  double weight = 1;                     // its share of the time, a full all-reduce having 1
  std::vector<std::int64_t> sizes = {};  // bytes, ascending
};

// Point to point and exchange between nodes and within the first one, as far as there are ranks for
// them. Behind them come all-reduces of the library, if the transport has one: over fewer ranks than
// all, by powers of two and at a lower weight, and last over all ranks.
[[nodiscard]] std::vector<Pattern> message_patterns(const runtime::Transport& transport,
                                                    const NodeMap& nodes);

// Plays patterns. All ranks call the same functions; times are in seconds, and count on the first
// rank of the ring.
class PatternPlayer {
 public:
  // For messages of up to `largest` bytes, and all-reduces of up to `largest_all_reduce`.
  PatternPlayer(runtime::Transport& transport, std::int64_t largest,
                std::int64_t largest_all_reduce = 0);

  // One repetition of a pattern that is timed by size. An all-reduce is timed until it is done on
  // the first rank.
  [[nodiscard]] double once(const Pattern& pattern, std::int64_t bytes);
  // Half of a round trip.
  [[nodiscard]] double ping(const Ring& pair, std::int64_t bytes);
  // The mean of `least_steps` steps or more. In each, every rank sends to the one `by` places after
  // it and receives from the one as far before it.
  [[nodiscard]] double exchange(const Ring& ring, std::int64_t bytes, int least_steps, int by = 1);
  // The first rank sends a message to each of the next `receivers`, who answer. When each answer
  // was there.
  [[nodiscard]] std::vector<double> fan_out(const Ring& ring, std::int64_t bytes, int receivers);
  // `count` messages to the next rank, a few at a time, and as many from the one before. When each
  // had come, on every rank.
  [[nodiscard]] std::vector<double> stream_of(const Ring& ring, std::int64_t bytes, int count);
  // `count` messages in a row, and an answer of a byte.
  [[nodiscard]] double flood(const Ring& pair, std::int64_t bytes, int count);

 private:
  // The library's own, over the ranks of the ring, which are the first of all, of as many whole
  // elements as fit the bytes.
  void all_reduce(const Ring& ring, std::int64_t bytes);
  void send(int to, std::int64_t bytes);
  void receive(int from, std::int64_t bytes);

  runtime::Transport& transport_;
  runtime::Memory sent_;
  runtime::Memory received_;
};

// Messages of a stream that are on their way at a time. What comes in is acknowledged behind them,
// and acknowledgements take up to 3 % of a slow link: all at once, they would come after the end.
inline constexpr int in_flight = 4;

}  // namespace paceline::calibration
