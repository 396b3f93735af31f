// The memory of a network on a device, while it is compiled: blocks of an arena that values share by
// their lives, and memory that is kept from pass to pass.
//
// A network is compiled twice, in the same order. The first time only measures: addresses are null.
// Then the memory is allocated, and the second time gives every operation its addresses.
//
// Private to runtime/network/cuda.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "runtime/network/memory_plan.h"

namespace paceline::runtime::cuda {

using ArenaBlock = int;
inline constexpr ArenaBlock no_block = -1;

class Memories {
 public:
  // Memory of the arena, which is needed at the times that address() is asked for it.
  [[nodiscard]] ArenaBlock new_block(std::size_t bytes) {
    if (!is_bound_) return plan_.add(bytes);
    return next_block_++;
  }
  [[nodiscard]] bool is_bound() const { return is_bound_; }
  // Says at which time of the pass the blocks are needed that are asked for next.
  void set_time(int time) { time_ = time; }
  [[nodiscard]] std::byte* address(ArenaBlock block) {
    if (is_bound_) return arena_ + plan_.offset(block);
    plan_.use(block, time_);
    return nullptr;
  }
  // Memory of its own, aligned to 256 bytes.
  [[nodiscard]] std::byte* keep(std::size_t bytes) {
    const std::size_t offset = kept_bytes_;
    kept_bytes_ += (bytes + alignment - 1) / alignment * alignment;
    return is_bound_ ? kept_ + offset : nullptr;
  }

  // The end of the first time. Sizes are those of the memory that bind() is then given.
  void measure() {
    plan_.place();
    kept_bytes_before_ = kept_bytes_;
  }
  [[nodiscard]] std::size_t arena_bytes() const { return plan_.bytes(); }
  [[nodiscard]] std::size_t kept_bytes() const { return kept_bytes_before_; }
  // Begins the second time.
  void bind(std::byte* arena, std::byte* kept) {
    arena_ = arena;
    kept_ = kept;
    is_bound_ = true;
    next_block_ = 0;
    kept_bytes_ = 0;
  }

 private:
  static constexpr std::size_t alignment = 256;

  MemoryPlan plan_;
  int time_ = 0;
  std::size_t kept_bytes_ = 0;
  std::size_t kept_bytes_before_ = 0;
  bool is_bound_ = false;
  ArenaBlock next_block_ = 0;
  std::byte* arena_ = nullptr;
  std::byte* kept_ = nullptr;
};

}  // namespace paceline::runtime::cuda
