// Tests: tests/runtime/network_parts_test.cc.
#include "runtime/network/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::runtime {
namespace {

std::size_t rounded_up(std::size_t bytes) {
  constexpr std::size_t unit = MemoryPlan::alignment;
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

int MemoryPlan::add(std::size_t bytes) {
  blocks_.push_back({.bytes = rounded_up(bytes)});
  return static_cast<int>(blocks_.size()) - 1;
}

void MemoryPlan::use(int block, int time) {
  Block& used = blocks_.at(to_size(block));
  const bool is_new = used.last < used.first;
  used.first = is_new ? time : std::min(used.first, time);
  used.last = is_new ? time : std::max(used.last, time);
}

void MemoryPlan::place() {
  std::vector<std::size_t> order(blocks_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return blocks_[a].bytes > blocks_[b].bytes;
  });
  std::vector<const Block*> placed;  // by offset
  for (const std::size_t index : order) {
    Block& block = blocks_[index];
    std::size_t offset = 0;
    for (const Block* other : placed) {
      const bool meets = block.first <= other->last && other->first <= block.last;
      if (!meets) continue;
      if (offset + block.bytes <= other->offset) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    block.offset = offset;
    bytes_ = std::max(bytes_, offset + block.bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), &block,
                         [](const Block* a, const Block* b) { return a->offset < b->offset; }),
        &block);
  }
}

std::size_t MemoryPlan::offset(int block) const {
  return blocks_.at(to_size(block)).offset;
}

std::size_t MemoryPlan::bytes_unshared() const {
  std::size_t sum = 0;
  for (const Block& block : blocks_) sum += block.bytes;
  return sum;
}

}  // namespace paceline::runtime
