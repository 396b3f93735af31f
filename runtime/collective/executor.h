// The executor: runs any schedule between ranks, on any transport. It holds no algorithm: it reads
// the schedule through models/collective/rank_program.h, as the simulator's executor engine does.
//
// A bucket is an array of the wire type. prepare() compiles this rank's part of a schedule for a
// bucket size (models/collective/rank_program.h): what it receives, cut into messages, in the order
// of the steps; which messages may be sent once which have landed; and the scratch that it needs.
// Nothing is allocated after that. A message is therefore sent on while the next is reduced and the
// one after it is under way.
//
// Arithmetic: sums are formed in FP32. A rank rounds a partial sum to the wire type once, before it
// is sent or is the result; consecutive contributions that it adds to one part in between are not
// rounded. What is sent is what is kept, so all ranks end with the same bits for every schedule
// that the verifier proves. NaN and infinity travel as IEEE 754 says.
//
// Accuracy: a contribution is rounded to the wire type at most R times on its way into the result,
// R the steps that add, or p - 1 where that is less; with the unit roundoff u of the wire type
// (2^-11 for FP16, 2^-8 for BF16),
//   |result - sum of x| <= ((1 + u)^R (1 + 2^-24)^(p-1) - 1) * sum of |x|
// where nothing overflows, and 2^-25 (p - 1) more for FP16's subnormal numbers. On an FP32 wire
// (R = 0) the additions are those of execute_sequentially(), with the same bits.
//
// A receive that replaces lands in the bucket itself, and sends leave from there. What is added
// lands in scratch that the collectives of a stream share: a few messages of it, or as much as a
// rank receives in one step where ranks add in place to what they send (recursive doubling).
//
// Sums are kernels of a device (runtime/device/device.h), on one of its streams for each stream of
// the transport. A message that was added counts as landed when the kernel's token is done, and not
// when the call that starts it returns: only then is the sum sent on, or its scratch received into.
//
// Thread safety: none; all calls come from the thread that calls the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "models/base/precision.h"
#include "models/collective/schedule.h"
#include "runtime/collective/collective_executor.h"
#include "runtime/device/device.h"
#include "runtime/transport/transport.h"

namespace paceline::runtime {

struct ExecutorOptions {
  // The largest message, in bytes. Larger ones overlap less, and smaller ones pay more latencies. 0
  // takes the default for the transport and the bucket's size.
  std::size_t message_bytes = 0;
  // How far sends run ahead, in bytes, as in models::MessageSizes, in place of the transport's.
  std::optional<std::int64_t> ahead_bytes = {};
};

class Executor final : public CollectiveExecutor {
 public:
  // Adds on the CPU.
  explicit Executor(Transport& transport, ExecutorOptions options = {});
  // Adds on the device, which outlives the executor. Throws InputError if there is no kind of
  // memory that both the transport and the device take.
  Executor(Transport& transport, Device& device, ExecutorOptions options = {});
  // Aborts the transport if a collective is in flight, because its memory may be gone next.
  ~Executor() override;

  [[nodiscard]] const ExecutorTraits& traits() const override;
  [[nodiscard]] Collective prepare(const models::PlannedSchedule& schedule, std::int64_t elements,
                                   models::WireType wire, int stream) override;
  // Prepares a schedule that is in no plan.
  [[nodiscard]] Collective prepare(const models::Schedule& schedule, std::int64_t elements,
                                   models::WireType wire, int stream = 0);

  // On one stream a collective that is started while another is in flight runs after it. Waiting
  // for its token makes progress, and testing it does not. A library's all-reduce blocks.
  Token start(Collective collective, const ArrayView& bucket, const Token& ready) override;
  bool progress() override;
  void abort() noexcept override;

  // Starts a collective on a bucket in host memory that is ready.
  Token start(Collective collective, void* bucket);
  [[nodiscard]] bool done(Collective collective) const;
  // Progresses until the collective is done.
  void wait(Collective collective);
  void run(Collective collective, void* bucket) {
    start(collective, bucket);
    wait(collective);
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::runtime
