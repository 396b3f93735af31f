// Tests: tests/runtime/network_test.cc.
#include "runtime/network/onednn/workshop.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "models/base/error.h"

namespace paceline::runtime::onednn {

Arena::Arena(std::size_t bytes) {
  constexpr std::size_t large_page = std::size_t{2} << 20;
  const std::size_t size = std::max(large_page, (bytes + large_page - 1) / large_page * large_page);
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(large_page, size)));
  if (data_ == nullptr) throw std::bad_alloc();
  madvise(data_.get(), size, MADV_HUGEPAGE);  // a wish: it may fail
  std::memset(data_.get(), 0, size);
}

void Arena::Free::operator()(std::byte* data) const {
  std::free(data);
}

Block Workshop::new_block(const Description& layout) {
  return plan_.add(std::max<std::size_t>(layout.get_size(), 1));
}

Memory Workshop::in_block(Block block, const Description& layout) {
  plan_.use(block, time_);
  Memory memory(layout, engine_, DNNL_MEMORY_NONE);
  in_arena_.emplace_back(block, memory);
  return memory;
}

Memory Workshop::same_bytes(const Memory& memory, const Description& layout) {
  const auto found = std::find_if(in_arena_.rbegin(), in_arena_.rend(), [&](const auto& placed) {
    return placed.second.get() == memory.get();
  });
  PACELINE_ASSERT(found != in_arena_.rend(), "the memory is of the arena");
  return in_block(found->first, layout);
}

dnnl::primitive_attr Workshop::attributes(bool with_relu) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (with_relu) {
    dnnl::post_ops relu;
    relu.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
    attributes.set_post_ops(relu);
  }
  return attributes;
}

Step Workshop::reorder(const Memory& from, const Memory& to) {
  const dnnl::reorder::primitive_desc description(engine_, from.get_desc(), engine_, to.get_desc(),
                                                  attributes());
  return step(description, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

Step Workshop::sum(const Memory& to, const Memory& part) {
  const Description layout = to.get_desc();
  const dnnl::binary::primitive_desc description(
      {dnnl::algorithm::binary_add, layout, part.get_desc(), layout}, attributes(), engine_);
  return step(description, {{DNNL_ARG_SRC_0, to}, {DNNL_ARG_SRC_1, part}, {DNNL_ARG_DST, to}});
}

Memory Workshop::scratchpad(const Description& layout) {
  scratchpads_.push_back(Memory(layout, engine_, DNNL_MEMORY_NONE));
  scratchpad_bytes_ = std::max(scratchpad_bytes_, layout.get_size());
  return scratchpads_.back();
}

std::pair<Arena, Arena> Workshop::place() {
  plan_.place();
  Arena arena(plan_.bytes());
  for (auto& [block, memory] : in_arena_)
    memory.set_data_handle(arena.data() + plan_.offset(block));
  Arena scratch(scratchpad_bytes_);
  for (Memory& memory : scratchpads_) memory.set_data_handle(scratch.data());
  in_arena_.clear();
  scratchpads_.clear();
  return {std::move(arena), std::move(scratch)};
}

}  // namespace paceline::runtime::onednn
