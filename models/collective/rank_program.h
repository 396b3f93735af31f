// A rank's program: one rank's part of a schedule, compiled for a bucket of a given size. The
// runtime's executor runs it, message by message, and the simulator's executor engine times it.
//
// The program lists what the rank receives, in the order in which it lands it, and what it sends,
// in the order in which it issues it. It knows no transport and no memory: elements are counted
// from the start of the bucket.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "models/base/precision.h"
#include "models/collective/schedule.h"
#include "models/collective/span.h"

namespace paceline::models {

using Elements = Span<std::int64_t>;

struct RankProgram {
  // When a message travels, in the order of the schedule. Its sender and its receiver agree on it.
  struct Turn {
    int step = 0;
    std::int64_t number = 0;  // among the messages that its transfer is cut into
    auto operator<=>(const Turn&) const = default;
  };
  struct Send {
    int to = 0;
    Elements span;
    Turn turn = {};
  };
  // Contiguous entries of one of the program's lists.
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t last = 0;  // one past the last entry
  };
  struct Receive {
    int from = 0;
    bool reduce = false;
    Elements span;
    // Sends that read the span and must be done before the message lands in it, as indices into
    // `awaited`.
    Range sends_before = {};
    // Index of the latest receive that lands in the span before this one; -1 if there is none.
    std::int64_t receive_before = -1;
    // How a reduction is rounded, as indices into `pieces`.
    Range pieces = {};
    // Sends before this index may be issued once the message has landed.
    std::uint32_t sends_after = 0;
    // Receives before this index must be posted while this one is awaited.
    std::uint32_t posted_with = 0;
    Turn turn = {};
  };
  // A part of a reduction that is rounded in one way: whether the sum so far is held in FP32, and
  // whether it stays there.
  struct Piece {
    Elements span;
    bool sum_is_wide = false;
    bool stays_wide = false;
  };

  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::vector<std::uint32_t> awaited;  // indices of sends
  std::vector<Piece> pieces;
  std::uint32_t sends_at_start = 0;    // how many sends wait for nothing
  std::uint32_t most_posted = 0;       // how many receives are posted at one time, at most
  std::int64_t largest_reduction = 0;  // elements of the largest message that is added
  Elements wide;                       // the span that is ever held in FP32
};

struct RankProgramOptions {
  std::int64_t message_elements = 1;  // of the largest message
  // How many elements the receives that are posted at one time have together, where the schedule
  // allows a choice.
  std::int64_t window_elements = 1;
  // Sends may run this many elements ahead of receives (MessageSizes::ahead_bytes); 0 means without
  // limit.
  std::int64_t ahead_elements = 0;
};

// How many nearly equal messages a transfer is cut into. Its sender and its receiver agree on it.
[[nodiscard]] std::int64_t message_count(Elements transfer, std::int64_t message_elements);

// Compiles the part of `rank`, 0 <= rank < schedule.ranks(), for a bucket of `elements` >= 0.
//
// The window has at least 2 receives and at most 16: the next message is posted when one lands, and
// those that wait stay in the cache. A rank's sends run ahead of what it has received by at most
// the larger of ahead_elements and two messages to each receiver. They never wait for what comes no
// earlier in the schedule: a root sends all that it has. O(m log m) time for m messages.
[[nodiscard]] RankProgram compile(const Schedule& schedule, int rank, std::int64_t elements,
                                  WireType wire, const RankProgramOptions& options);

}  // namespace paceline::models
