// What runs collectives: the seam between whoever has a bucket to sum over the ranks and the way in
// which it travels. A collective is started when its bucket will be ready at a token, and gives the
// token of its completion; nobody waits in between.
//
// Implementations: the executor on transports (executor.h), which needs a host that calls
// progress(), and the one on NCCL (nccl/nccl_executor.h), which runs on streams of a GPU and does
// not. Both read schedules.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/plan/plan.h"
#include "runtime/device/memory.h"
#include "runtime/device/token.h"

namespace paceline::runtime {

// A collective over a bucket of one size, prepared to run again and again: its number in the
// executor that prepared it.
struct Collective {
  std::uint32_t number = 0;
};

// What does not change in the life of an executor.
struct ExecutorTraits {
  std::string_view name;  // of the transport, or of the library: "threads", "open-mpi"
  int rank = 0;
  int ranks = 1;
  int streams = 1;    // numbered from 0; collectives of different streams run at the same time
  MemoryKinds takes;  // the memory that buckets may be in
};

// Thread safety: none; one thread calls, and tests and waits for the tokens.
class CollectiveExecutor {
 public:
  CollectiveExecutor() = default;
  CollectiveExecutor(const CollectiveExecutor&) = delete;
  CollectiveExecutor& operator=(const CollectiveExecutor&) = delete;
  virtual ~CollectiveExecutor() = default;

  [[nodiscard]] virtual const ExecutorTraits& traits() const = 0;

  // Every rank prepares the same collectives in the same order. Nothing is allocated after that.
  // Throws InputError if the schedule is over another number of ranks than the job, the stream is
  // none of the executor's, or the collective is a library's that the executor does not have.
  [[nodiscard]] virtual Collective prepare(const models::PlannedSchedule& schedule,
                                           std::int64_t elements, models::WireType wire,
                                           int stream) = 0;

  // Starts a collective on this rank's bucket, in place, once `ready` is done; returns the token of
  // its completion. The bucket is an array of the wire type, in memory that traits().takes. Ranks
  // start the collectives of one stream in the same order. A collective is started again only when
  // its last token is done.
  [[nodiscard]] virtual Token start(Collective collective, const ArrayView& bucket,
                                    const Token& ready) = 0;

  // Moves what was started as far as it goes without blocking, where that takes the host; a token
  // is only then found to be done. Returns whether anything moved. Throws RunError that names a
  // rank that is gone.
  virtual bool progress() = 0;

  // Leaves the job: the memory of what is in flight is not touched after this.
  virtual void abort() noexcept = 0;
};

}  // namespace paceline::runtime
