// The executor: runs any schedule between ranks, on any transport. It holds no algorithm: it reads
// the schedule through models/collective/enumerate.h, as all other readers do.
//
// A bucket is an array of the wire type. prepare() compiles this rank's part of a schedule for a
// bucket size: what it receives, cut into segments, in the order of the steps; which segments may
// be sent once which have landed; and the scratch that it needs. Nothing is allocated after that.
// So a segment is sent on while the next is reduced and the one after it is under way.
//
// Arithmetic: sums are formed in FP32. A rank rounds a partial sum to the wire type once, before it
// is sent or is the result; consecutive contributions that it adds to one part in between are not
// rounded. What is sent is what is kept, so all ranks end with the same bits for every schedule
// that the verifier proves. NaN and infinity travel as IEEE 754 says.
//
// Thread safety: none; all calls come from the thread that calls the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "models/collective/schedule.h"
#include "models/plan/precision.h"
#include "runtime/transport/transport.h"

namespace paceline::runtime {

struct ExecutorOptions {
  // The largest message. Larger overlaps less, and smaller pays more alphas. 0 takes the default of
  // the transport and size.
  std::size_t segment_bytes = 0;
};

// This rank's part of a schedule over a bucket of one size, ready to run again and again.
class Collective;

class Executor {
 public:
  explicit Executor(Transport& transport, ExecutorOptions options = {});
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor();

  // Lives as long as the executor. Every rank prepares the same. Throws InputError if the schedule
  // is over another number of ranks than the transport, or the stream is none of its.
  [[nodiscard]] Collective& prepare(const models::Schedule& schedule, std::int64_t elements,
                                    models::WireType wire, int stream = 0);

  // Starts a collective on this rank's bucket, in place. The ranks start the collectives of one
  // stream in the same order; several streams are independent. On one stream a collective that is
  // started while another is in flight runs after it.
  void start(Collective& collective, void* bucket);
  // Moves everything that was started as far as it goes without blocking. Returns whether anything
  // moved. Throws RunError that names a peer that is gone.
  bool progress();
  [[nodiscard]] bool done(const Collective& collective) const;
  // Progresses until the collective is done.
  void wait(Collective& collective);

  // start and wait.
  void run(Collective& collective, void* bucket) {
    start(collective, bucket);
    wait(collective);
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::runtime
