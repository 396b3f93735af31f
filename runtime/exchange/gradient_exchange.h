// Gradients on their way: packed into the plan's buckets as backward produces them, all-reduced
// while backward goes on, and back in FP32 before the update.
//
// A communication thread drives the executor and, with it, the transport, so that messages move
// while the computing thread computes. While no iteration is under way it leaves them alone. Where the wire type is FP32 a bucket is a range of the flat
// gradient array itself and nothing is copied; otherwise it is cast to the wire type, travels, and
// is cast back. What a rank gets is the sum over the ranks.
//
// Two iterations may be under way: with double buffering (ChainerMN 1.3) the buckets of one travel
// during forward and backward of the next.
//
// Thread safety: one computing thread calls; errors of the communication thread are rethrown there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "models/base/units.h"
#include "models/plan/plan.h"
#include "runtime/collective/executor.h"
#include "runtime/exchange/recorder.h"
#include "runtime/network/trainable_network.h"
#include "runtime/transport/transport.h"

namespace paceline::runtime {

class GradientExchange {
 public:
  struct Outcome {
    bool finite = true;  // the same on all ranks
    Seconds exposed;     // how long finish() waited
    Seconds travelled;   // from the first bucket's start to the last one's end
  };

  // `parameters` in backward order. Throws InputError if the plan is not of these gradients or of
  // as many ranks, or one that cannot be run: a library's own all-reduce that the transport does
  // not have, or priority, for which all ranks would have to agree on an order while they run.
  GradientExchange(Transport& transport, const models::Plan& plan,
                   std::span<const ParameterPlace> parameters, Recorder* recorder = nullptr);
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;
  // Lets what is in flight go: peers may find this rank gone.
  ~GradientExchange();

  // Begins an iteration, whose gradients will stand in `gradients` (the whole flat array, which
  // must live until finish). At most two are under way.
  void begin(std::span<float> gradients, std::int64_t iteration);
  // The gradient of parameter i is there, and all before it: of the iteration begun last.
  void ready(int parameter);
  // Waits until the oldest iteration's buckets are back. Throws RunError that names a rank that is
  // gone.
  Outcome finish();
  [[nodiscard]] int under_way() const;
  // Whether finish() would return at once: all buckets of the oldest iteration are back. An error
  // is for finish() to throw.
  [[nodiscard]] bool is_back() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::runtime
