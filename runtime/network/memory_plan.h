// A plan for blocks of memory that share one arena. Each block is needed from its first use to its
// last, and two blocks that are never needed at one time may lie at one place.
//
// Times are positions in one pass over a network and back; their unit is a layer's work.
#pragma once

#include <cstddef>
#include <vector>

namespace paceline::runtime {

class MemoryPlan {
 public:
  // Each block starts at a multiple of this many bytes: a cache line, and the widest vector.
  static constexpr std::size_t alignment = 64;

  // Adds a block that nothing uses yet, and returns its index.
  int add(std::size_t bytes);
  // Says that the block's content is needed at `time`.
  void use(int block, int time);
  // Gives each block its place: the largest first, each as low as those that it meets in time
  // allow. O(blocks^2).
  void place();

  // Where the block begins in the arena, in bytes. Call place() before.
  [[nodiscard]] std::size_t offset(int block) const;
  // The size of the arena in bytes. Call place() before.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // The size in bytes that the arena would have if no two blocks shared a place.
  [[nodiscard]] std::size_t bytes_unshared() const;

 private:
  struct Block {
    std::size_t bytes = 0;
    int first = 0;
    int last = -1;
    std::size_t offset = 0;
  };
  std::vector<Block> blocks_;
  std::size_t bytes_ = 0;
};

}  // namespace paceline::runtime
