// Proof that a schedule does what its collective promises, or the transfer where it stops doing so.
//
// The schedule is run symbolically: each chunk of each rank holds the set of ranks whose
// contribution it contains. Proven is, for a bucket of the given number of chunks:
//  1. every rank ends with every contribution that the collective promises it, exactly once (a sum
//     that would count a rank twice is a counterexample at the transfer that does it), and no
//     rank sends a chunk of which it holds nothing yet;
//  2. no chunk is read in a step that replaces it, nor written twice, unless all writes are
//     reductions (an executor reduces from a receive buffer after the step's sends);
//  3. messages go between two different ranks of the schedule and lie within the bucket.
// It cannot deadlock, even with synchronous sends, because a schedule has both ends of a message
// in the same step: an executor that posts all of a rank's messages of a step before it
// waits always lets the ranks that are least advanced go on. Both ends see the same messages:
// for_each_send and for_each_receive read the same definition (tests/models/schedule_test.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "models/collective/catalogue.h"
#include "models/collective/enumerate.h"
#include "models/collective/schedule.h"

namespace paceline::models {

struct Proof {
  std::int64_t chunks = 0;     // for which it was proven
  std::int64_t transfers = 0;  // messages that are not empty
};

struct Counterexample {
  int step = 0;  // from 0; the number of steps if the fault is in what a rank ends with
  int rank = 0;
  std::int64_t chunk = 0;
  std::string why;
};

using Verdict = std::variant<Proof, Counterexample>;

// Any enumeration of transfers by step: a schedule's, or one that a test has broken.
using TransferSink = std::function<void(const Transfer<std::int64_t>&)>;
using TransferSource = std::function<void(int step, const TransferSink&)>;

// Memory: 256 MB, or ranks^2 / 8 bytes where that is more (chunks are taken in blocks).
// Time: O(transferred chunks x ranks / 64).
[[nodiscard]] Verdict verify(Collective collective, int ranks, int steps, std::int64_t chunks,
                             const TransferSource& source);
[[nodiscard]] Verdict verify(Collective collective, const Schedule& schedule, std::int64_t chunks);
[[nodiscard]] Verdict verify_all_reduce(int ranks, int steps, std::int64_t chunks,
                                        const TransferSource& source);
[[nodiscard]] Verdict verify_all_reduce(const Schedule& schedule, std::int64_t chunks);

// The chunk counts that together exercise a schedule: its natural number, one more (parts that
// differ in size) and half of it (parts that are empty).
[[nodiscard]] std::vector<std::int64_t> telling_chunk_counts(const Schedule& schedule);

}  // namespace paceline::models
