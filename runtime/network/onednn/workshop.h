// Memories and primitives of a network that is being compiled: the arena, the scratchpad that all
// primitives share, and the steps that move and add. Private to runtime/network/onednn.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/network/memory_plan.h"
#include "runtime/network/onednn/step.h"

namespace paceline::runtime::onednn {

using Description = dnnl::memory::desc;
using Memory = dnnl::memory;

// A block of the arena, by its index.
using Block = int;
inline constexpr Block no_block = -1;

// The memory of an arena, on large pages where the system gives them. It is zero at first.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::size_t bytes);
  [[nodiscard]] std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
};

// The elements of an FP32 memory of a plain layout, once it has its place.
[[nodiscard]] inline std::span<float> floats(const Memory& memory) {
  return {static_cast<float*>(memory.get_data_handle()),
          memory.get_desc().get_size() / sizeof(float)};
}

class Workshop {
 public:
  [[nodiscard]] const dnnl::engine& engine() const { return engine_; }
  // Says at which time of the pass the memories are needed that are asked for next.
  void set_time(int time) { time_ = time; }

  [[nodiscard]] Block new_block(const Description& layout);
  // The block's memory, which is needed at the time that was set.
  [[nodiscard]] Memory in_block(Block block, const Description& layout);
  [[nodiscard]] Memory temporary(const Description& layout) {
    return in_block(new_block(layout), layout);
  }
  // The same bytes of the arena in another layout.
  [[nodiscard]] Memory same_bytes(const Memory& memory, const Description& layout);
  // A memory of its own, outside the arena.
  [[nodiscard]] Memory persistent(const Description& layout) const {
    return Memory(layout, engine_);
  }
  // A memory of the caller, whose address each call sets.
  [[nodiscard]] Memory foreign(const Description& layout) const {
    return Memory(layout, engine_, DNNL_MEMORY_NONE);
  }

  // Attributes of a primitive: the common scratchpad, and a ReLU after the operation if
  // `with_relu`.
  [[nodiscard]] static dnnl::primitive_attr attributes(bool with_relu = false);
  // A primitive of attributes(), with its scratchpad.
  template <class PrimitiveDescription>
  [[nodiscard]] Step step(const PrimitiveDescription& description, Step::Arguments arguments) {
    const Description scratch = description.scratchpad_desc();
    if (scratch.get_size() > 0) arguments.emplace(DNNL_ARG_SCRATCHPAD, scratchpad(scratch));
    return Step(dnnl::primitive(description.get()), arguments);
  }
  [[nodiscard]] Step reorder(const Memory& from, const Memory& to);
  // to += part. Both have one layout.
  [[nodiscard]] Step sum(const Memory& to, const Memory& part);

  // Gives every memory its place. The arena and the scratchpad must outlive the steps.
  [[nodiscard]] std::pair<Arena, Arena> place();
  [[nodiscard]] std::size_t arena_bytes() const { return plan_.bytes(); }

 private:
  [[nodiscard]] Memory scratchpad(const Description& layout);

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  MemoryPlan plan_;
  int time_ = 0;
  std::vector<std::pair<Block, Memory>> in_arena_;
  std::vector<Memory> scratchpads_;
  std::size_t scratchpad_bytes_ = 0;
};

}  // namespace paceline::runtime::onednn
