// Orders of 0 to count - 1 that are cheap to step through: up, down, or with a stride that reaches each
// number once.
#pragma once

#include <cstdint>
#include <numeric>

#include "tests/support/cuda_on_host/state.h"

namespace cuda_on_host {

class Permutation {
 public:
  // More numbers than `most_scattered` go only up or down, since strides miss the caches.
  explicit Permutation(std::uint64_t count, std::uint64_t most_scattered = 1U << 16U)
      : count_(count) {
    const std::uint64_t kind = draw(count <= most_scattered ? 3 : 2);
    if (count < 2 || kind == 0) return;
    if (kind == 1) {
      stride_ = count - 1;
      first_ = count - 1;
      return;
    }
    first_ = draw(count);
    do stride_ = 1 + draw(count - 1);
    while (std::gcd(stride_, count) != 1);
  }

  // Calls visit(number) for each of the numbers.
  template <class Visit>
  void for_each(Visit visit) const {
    std::uint64_t at = first_;
    for (std::uint64_t i = 0; i < count_; ++i) {
      visit(at);
      at += stride_;
      if (at >= count_) at -= count_;
    }
  }

 private:
  std::uint64_t count_;
  std::uint64_t first_ = 0;
  std::uint64_t stride_ = 1;
};

}  // namespace cuda_on_host
