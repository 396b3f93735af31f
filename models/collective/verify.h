// Proof that a schedule does what its collective promises, or the place where it does not.
//
// The schedule is run symbolically: each chunk of each rank holds the exact set of ranks whose
// contribution it contains, once each, or the mark of the message that spoiled it. For a bucket of
// the given number of chunks, the proof says:
//  1. every rank ends with every contribution that the collective promises it, exactly once. A sum
//     that counts a rank twice, or adds what was never written, spoils its chunk, and whatever
//     that chunk is added to or put in place of; only a chunk put in its place heals it. What is
//     promised to nobody may end spoiled;
//  2. no chunk is read in a step that replaces it, nor written twice, unless all writes are
//     reductions (an executor reduces from a receive buffer after the step's sends);
//  3. messages go between two different ranks of the schedule and lie within the bucket;
//  4. the ranks cannot deadlock, even with synchronous (rendezvous) sends, and the two ends of
//     every message are in one step and say the same of it.
//
// MODEL of 4. Each rank runs its own program: for each step in order it posts all that it sends
// and receives in the step, by its own reading of the schedule, without waiting (MPI_Isend and
// MPI_Irecv; one group of ncclSend and ncclRecv), and then waits for all of it (MPI_Waitall). A
// message completes only when both its ends are posted: nothing is buffered. The i-th send from a
// to b meets the i-th receive at b from a; there are no wildcards, so that tags need not tell
// messages apart. Messages of size 0 are not posted. As posting never waits and what meets what is
// fixed, progress is confluent: any order of events leads to the same end. One run of all programs,
// as far as they go, therefore decides whether there is a deadlock in any, and a rank that is left
// waiting is named with those that it waits for.
//
// With both ends of every message in one step (4), a rank that waits in the least step of all is
// never left waiting, and the contents of the buffers do not depend on timing (2), so that the
// symbolic run step by step (1) stands for every execution.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/collective/catalogue.h"
#include "models/collective/enumerate.h"
#include "models/collective/schedule.h"

namespace paceline::models {

struct Proof {
  std::int64_t chunks = 0;     // of the bucket that it was proven for
  std::int64_t transfers = 0;  // that are not empty
};

enum class Fault {
  malformed,  // a message to its sender, to a rank that does not exist, or beyond the bucket
  deadlock,   // ranks wait forever
  mismatch,   // the ends of a message, or two readings of the schedule, differ
  race,       // a chunk is replaced while it is sent, or while another message writes it
  wrong_sum,  // a rank ends without a contribution, or with one twice
};

[[nodiscard]] std::string_view name(Fault fault);

struct Counterexample {
  Fault fault = Fault::wrong_sum;
  int step = 0;  // from 0; the number of steps where a rank ends without a contribution
  int rank = 0;
  std::int64_t chunk = 0;
  std::string why;
};

using Verdict = std::variant<Proof, Counterexample>;

// Functions that enumerate transfers, of a step, or of a rank in a step.
using TransferSink = std::function<void(const Transfer<std::int64_t>&)>;
using TransferSource = std::function<void(int step, const TransferSink&)>;
using PostSource = std::function<void(int rank, int step, const TransferSink&)>;

// The three ways to read a schedule: a step as a whole, and what one rank sends or receives in it.
struct Readings {
  TransferSource transfers;
  PostSource sends;
  PostSource receives;
};

// Proves 1 to 4 for a schedule, or for any three readings of one.
// Memory: 300 MB, or ranks^2 / 8 bytes where that is more (chunks are taken in blocks).
// Time: O(transferred chunks x ranks / 64 + steps x ranks).
[[nodiscard]] Verdict verify(Collective collective, const Schedule& schedule, std::int64_t chunks);
[[nodiscard]] Verdict verify(Collective collective, int ranks, int steps, std::int64_t chunks,
                             const Readings& readings);
[[nodiscard]] Verdict verify_all_reduce(const Schedule& schedule, std::int64_t chunks);

// Proves 1 to 3 alone, for transfers that have both ends in one step by construction.
[[nodiscard]] Verdict verify(Collective collective, int ranks, int steps, std::int64_t chunks,
                             const TransferSource& source);

// Proves 4 alone. Returns the first deadlock or mismatch, if there is one.
// Time: O(transfers + steps x ranks); memory: O(messages under way).
[[nodiscard]] std::optional<Counterexample> left_waiting(int ranks, int steps, std::int64_t chunks,
                                                         const Readings& readings);

// The chunk counts that together exercise a schedule: its natural number of chunks, one more (parts
// differ in size) and half of it (parts are empty).
[[nodiscard]] std::vector<std::int64_t> telling_chunk_counts(const Schedule& schedule);

}  // namespace paceline::models
