// Tests: tests/runtime/loop/tensor_training_test.cc.
#include "runtime/exchange/tensor_sums.h"

#include <chrono>
#include <utility>

namespace paceline::runtime {

void TensorSums::sum(const ArrayView& values) {
  const Recorder::Clock::time_point start = Recorder::Clock::now();
  exchange_.sum(values);
  const Recorder::Clock::time_point end = Recorder::Clock::now();
  waited_ += Seconds{std::chrono::duration<double>(end - start).count()};
  if (layers_ != nullptr) layers_->exchanged(start, end);
}

Seconds TensorSums::take_waited() {
  return std::exchange(waited_, Seconds{0});
}

}  // namespace paceline::runtime
