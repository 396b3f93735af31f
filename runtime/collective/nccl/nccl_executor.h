// The executor on NCCL: collectives run on streams of a GPU, and no host is needed once they are
// started.
//
// A schedule is a program of streams (runtime/collective/stream_program.h): exchanges are groups of
// ncclSend and ncclRecv on the lane of transfers, and sums are kernels of the device on the lane of
// sums. stream_program.h argues that no schedule can deadlock, whether sends are buffered or not, and
// has the order of accesses. The results have the bits of the executor on transports (executor.h),
// for every schedule and wire type. A plan's `nccl` is ncclAllReduce, whose order of additions, and
// with 16 bits on the wire whose rounding, are NCCL's own: they depend on its algorithm.
//
// Streams. Each stream of the executor has a communicator, two CUDA streams and scratch of its own,
// so collectives of different streams run at the same time. NCCL asks that the kernels of all
// communicators fit a GPU at once; they take a few multiprocessors each, so two or four do.
//
// Memory: for each stream scratch of twice what a rank adds at one time, in messages: two messages
// for a ring, and 2 (p - 1) where one rank adds what all others send it.
//
// Tokens are events. A bucket waits for its `ready` token on the GPU where that is of a CUDA stream
// of the same device, and on the host in start() where it is not.
//
// prepare() connects the ranks that a schedule connects, by a byte to each, since NCCL connects two
// ranks in the call that first needs it and would block there. A library's all-reduce is run once on
// one number. NCCL may still connect for a larger size in the first start of an nccl collective, so
// that ranks start those of different streams in one order.
//
// Errors and patience. While a token is not done, testing it, waiting for it and progress() ask NCCL
// for asynchronous errors. An error, or a stream on which nothing was done for as long as the
// patience, aborts all communicators, and throws one line with this rank: "cannot all-reduce as rank
// 1 of 4: ...". Every later call throws the same. NCCL does not say which peer it was.
#pragma once

#include <cstddef>
#include <memory>

#include "models/base/units.h"
#include "runtime/channel/channel.h"
#include "runtime/collective/collective_executor.h"
#include "runtime/device/cuda/cuda_device.h"

namespace paceline::runtime {

struct NcclOptions {
  int streams = 1;  // at least 1
  // How long a collective may be under way, with what it waits for, while none of its stream ends;
  // and how long a rank waits for the others to come.
  Seconds patience = device_patience;
  // The largest message into which a transfer is cut, in bytes. Smaller ones hide more of the sums,
  // and pay more launches. 0 takes a quarter of a rank's part of the bucket, but at least 512 KiB and
  // at most 4 MiB. These limits are assumed, and were not measured on a GPU yet.
  std::size_t message_bytes = 0;
};

class NcclExecutor final : public CollectiveExecutor {
 public:
  // The channel's ranks, each with a GPU of its own. All ranks call it at the same point. The
  // channel sends nothing after that, but is asked whether a peer is gone (Channel::lost_peer): NCCL
  // itself may not tell. Channel and device outlive the executor. Throws RunError that names
  // this rank; UnavailableError if this build is without NCCL.
  NcclExecutor(Channel& channel, CudaDevice& device, NcclOptions options = {});
  // Aborts the communicators if a collective is in flight, because its memory may be gone next.
  ~NcclExecutor() override;

  [[nodiscard]] const ExecutorTraits& traits() const override;
  [[nodiscard]] Collective prepare(const models::PlannedSchedule& schedule, std::int64_t elements,
                                   models::WireType wire, int stream) override;
  // Prepares a schedule that is in no plan.
  [[nodiscard]] Collective prepare(const models::Schedule& schedule, std::int64_t elements,
                                   models::WireType wire, int stream = 0);
  [[nodiscard]] Token start(Collective collective, const ArrayView& bucket,
                            const Token& ready) override;
  // Asks NCCL for errors while something is in flight. Returns false: nothing takes the host.
  bool progress() override;
  void abort() noexcept override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::runtime
