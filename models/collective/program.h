// A rank's part of a schedule as a linear program over segments of a bucket: what the runtime's
// executor runs, message by message, and what the executor engine of the simulator times.
//
// The program lists what the rank receives, in the order in which it is landed, and what it sends,
// in the order in which it is issued. It knows no transport and no memory: elements are counted
// from the start of the bucket.
#pragma once

#include <cstdint>
#include <vector>

#include "models/base/precision.h"
#include "models/collective/schedule.h"
#include "models/collective/span.h"

namespace paceline::models {

using Elements = Span<std::int64_t>;

struct Program {
  struct Send {
    int to = 0;
    Elements span;
  };
  // Contiguous entries of one of the program's lists.
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t last = 0;  // behind the last
  };
  struct Receive {
    int from = 0;
    bool reduce = false;
    Elements span;
    // Sends that read the span and must be done before the message lands in it: indices into
    // `awaited`.
    Range sends_before = {};
    // The latest receive, by index, that lands in the span before this one; -1 for none.
    std::int64_t receive_before = -1;
    // How a reduction is rounded: indices into `pieces`.
    Range pieces = {};
    // Sends before this index may be issued once the message has landed.
    std::uint32_t sends_after = 0;
    // Receives before this index must be posted while this one is awaited.
    std::uint32_t posted_with = 0;
  };
  // A part of a reduction with one way of rounding: whether the sum so far is in FP32, and whether
  // it stays there.
  struct Piece {
    Elements span;
    bool sum_is_wide = false;
    bool stays_wide = false;
  };

  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::vector<std::uint32_t> awaited;
  std::vector<Piece> pieces;
  std::uint32_t sends_at_start = 0;    // that await nothing
  std::uint32_t most_posted = 0;       // receives at one time
  std::int64_t largest_reduction = 0;  // elements of the largest message that is added
  Elements wide;                       // what is ever held in FP32
};

// Message sizes that a transport likes, in bytes: below the smallest, cutting finer gains nothing,
// and above the largest, coarser does not.
struct Segmentation {
  std::int64_t smallest_bytes = 1;
  std::int64_t largest_bytes = 1;
  // How far sends to a peer may run ahead of what comes in; 0: without limit. Between hosts, what
  // runs ahead fills the queue of the host's link, where acknowledgements of what comes in wait
  // behind it: peers then run out of window, and links idle.
  std::int64_t ahead_bytes = 0;
};

// The largest message of a bucket: a quarter of a rank's part, within what the transport likes. A
// part that is cut in four travels on while three quarters of it are still to come.
[[nodiscard]] std::int64_t segment_bytes(std::int64_t bucket_bytes, int ranks,
                                         const Segmentation& segmentation);

struct ProgramOptions {
  std::int64_t segment_elements = 1;  // the largest message
  // Of receives posted at one time, where the schedule lets it be.
  std::int64_t window_elements = 1;
  std::int64_t ahead_elements = 0;  // as Segmentation::ahead_bytes
};

// How many nearly equal segments a message is cut into: the same at both ends of it.
[[nodiscard]] std::int64_t segment_count(Elements span, std::int64_t segment_elements);

// The window has at least 2 receives and at most 16: the next is there when one has landed, and
// those that wait stay in the cache. A rank's sends run at most ahead_elements, and two segments to
// each receiver at least, ahead of what it has received, but never wait for what comes no earlier
// in the schedule: a root sends all that it has. Time: O((messages in segments) log(messages in
// segments)) for a rank.
[[nodiscard]] Program compile(const Schedule& schedule, int rank, std::int64_t elements,
                              WireType wire, const ProgramOptions& options);

}  // namespace paceline::models
