// Gradients on their way: packed into the plan's buckets as backward produces them, all-reduced
// while backward goes on, and back in FP32 before the update.
//
// A communication thread drives the executor, so that messages move while the computing thread
// computes. While no iteration is under way it leaves the executor alone.
//
// Where the wire type is FP32 and the executor takes the memory of the gradients, a bucket is a
// range of the flat gradient array itself and nothing is copied. Otherwise it is cast to the wire
// type, travels, and is cast back. What a rank gets is the sum over the ranks. Casts and the search
// for what is not finite are kernels of the device, which wait for the tokens of the gradients on
// its streams, and not on the host.
//
// A plan of zero1, zero2 or zero3 sums each bucket to parts: a rank gets the sums of its own part of each, which it
// updates. The other parts of the gradients are then undefined. With zero2 and zero3 a bucket may have memory of its own,
// which is used again as soon as the bucket has been summed (place()).
// gather() brings the parts of all ranks to every rank: after the update with zero1 and zero2, and before a unit's
// forward and backward passes with zero3 (runtime/training/unit_weights.h).
//
// Collectives start in the order in which the computing thread asks for them, which is one order on all ranks.
//
// Where the plan's ranks are part of a mesh with tensor parallelism, neighbours share one network out, and buckets
// travel between the ranks with the same part of it. sum() adds what neighbours computed of one layer.
//
// Two iterations may be under way: with double buffering (ChainerMN 1.3) the buckets of one travel
// during forward and backward of the next.
//
// Thread safety: one computing thread calls; errors of the communication thread are rethrown there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/base/units.h"
#include "models/collective/rank_program.h"
#include "models/plan/plan.h"
#include "runtime/collective/collective_executor.h"
#include "runtime/device/device.h"
#include "runtime/exchange/recorder.h"
#include "runtime/network/trainable_network.h"
#include "runtime/transport/transport.h"

namespace paceline::runtime {

class GradientExchange {
 public:
  struct Outcome {
    bool finite = true;  // the same on all ranks; of a sharded plan, this rank's own parts
    Seconds exposed;     // how long finish() waited, and ready() of zero2 and fsdp
    Seconds travelled;   // from the first bucket's start to the last one's end
  };

  // `parameters` in backward order. The gradients are in the kind of memory that the device is
  // fastest in. Executor and device outlive the exchange. Throws InputError as check_runnable() and bucket_sum() do
  // (bucket_collectives.h), and for what cannot be run here: a library's own all-reduce that the executor does not have,
  // a sharding where the executor does not take the memory of the gradients, and zero2 or zero3 on another device than the
  // CPU.
  GradientExchange(CollectiveExecutor& executor, Device& device, const models::Plan& plan,
                   std::span<const ParameterPlace> parameters, Recorder* recorder = nullptr);
  // On the CPU, by an executor of its own on the transport.
  GradientExchange(Transport& transport, const models::Plan& plan,
                   std::span<const ParameterPlace> parameters, Recorder* recorder = nullptr);
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;
  // Lets what is in flight go: peers may find this rank gone.
  ~GradientExchange();

  // Begins an iteration, whose gradients will stand in `gradients` (the whole flat FP32 array,
  // which must live until finish). At most two are under way.
  void begin(const ArrayView& gradients, std::int64_t iteration);
  void begin(std::span<float> gradients, std::int64_t iteration) {
    begin(view_of(gradients), iteration);
  }
  // Memory for the gradients of a bucket of the iteration begun last, in place of the flat array: an FP32 array of the
  // bucket, of ordinary host memory, until the bucket has been summed. The flat array then gets this rank's part.
  [[nodiscard]] ArrayView place(int bucket);
  // The gradient of parameter i, and all before it, are there when the token is done: those of the
  // iteration begun last. With zero2 and fsdp it waits for the buckets before, so that gradients of no more than two buckets are in
  // memory.
  void ready(int parameter, const Token& when = {});
  // The parameters with whose gradients the exchange starts something, in rising order: the last of
  // each bucket, or the very last where all travel then.
  [[nodiscard]] std::vector<int> acts_on() const;
  // Waits until the oldest iteration's buckets are back. Throws RunError that names a rank that is
  // gone.
  Outcome finish();
  [[nodiscard]] int under_way() const;
  // Whether ranks have parts of the sums. own() has this rank's, in the flat array, one for each bucket; else
  // it is one that holds everything.
  [[nodiscard]] bool is_sharded() const;
  // How many ranks have each part of the sums: all where the plan is not sharded.
  [[nodiscard]] int replicas() const;
  [[nodiscard]] std::vector<models::Elements> own() const;
  // Starts to bring each rank's own part of a bucket to all ranks where the plan is sharded, once `when` is done. It is
  // an FP32 array of the bucket, in place. The iteration is that of the timeline. A bucket is gathered again only after
  // await_gather().
  void start_gather(int bucket, const ArrayView& values, std::int64_t iteration,
                    const Token& when = {});
  // Returns when the bucket's parts are there. Throws as finish() does.
  void await_gather(int bucket);
  // Both, for all buckets of a flat array.
  void gather(const ArrayView& values, std::int64_t iteration, const Token& when = {});
  // Replaces the values, which are in host memory, by their sums over the neighbours that share the network out. These
  // call it in the same order with as many values of one type. Returns when the sums are there, whatever else travels.
  // Throws as finish() does.
  void sum(const ArrayView& values);
  // Whether finish() would return at once: all buckets of the oldest iteration are back. An error
  // is for finish() to throw.
  [[nodiscard]] bool is_back() const;

 private:
  struct State;
  // On the CPU, by an executor that it keeps.
  GradientExchange(std::unique_ptr<CollectiveExecutor> executor, const models::Plan& plan,
                   std::span<const ParameterPlace> parameters, Recorder* recorder);

  std::unique_ptr<CollectiveExecutor> own_executor_;  // where it was made on a transport
  std::unique_ptr<State> state_;
};

}  // namespace paceline::runtime
