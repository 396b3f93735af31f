// Blocks of memory that share one arena: each is needed from its first use to its last, and two
// that are never needed at one time may lie at one place.
//
// Times are positions in one pass over a network and back; their unit is a layer's work.
#pragma once

#include <cstddef>
#include <vector>

namespace paceline::runtime {

class MemoryPlan {
 public:
  // Of a block's place: a cache line, and the widest vector.
  static constexpr std::size_t alignment = 64;

  // A new block, which nothing uses yet. Returns its index.
  int add(std::size_t bytes);
  // Says that the block's content is needed at `time`.
  void use(int block, int time);
  // Gives each block its place: the largest first, each as low as those that it meets in time
  // allow. O(blocks^2).
  void place();

  // After place(): the block's first byte in the arena.
  [[nodiscard]] std::size_t offset(int block) const;
  // After place(): of the arena.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // The sum over all blocks, as if nothing were shared.
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
