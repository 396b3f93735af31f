// Tests: tests/cuda/device/update_test.cc.
#include "runtime/device/cuda/update_workspaces.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "models/base/error.h"
#include "runtime/device/cuda/event_points.h"
#include "runtime/device/cuda/handle.h"

namespace paceline::runtime::cuda {
namespace {

// The table, cut.
struct Cut {
  std::vector<Stretch> blocks;
  std::vector<Stretch> tiles;
  std::vector<TensorEntry> tensors;
};

Cut cut(const UpdateTable& table) {
  Cut all;
  for (const UpdatedTensor& tensor : table.tensors()) {
    const auto number = static_cast<std::uint32_t>(all.tensors.size());
    const std::uint64_t end = tensor.offset + tensor.elements;
    TensorEntry entry{.first_block = static_cast<std::uint32_t>(all.blocks.size()),
                      .blocks = 0,
                      .decay = tensor.decay};
    if (table.lars() && tensor.has_own_rate) {
      for (std::uint64_t at = tensor.offset; at < end; at += block_elements, ++entry.blocks)
        all.blocks.push_back(
            {at, static_cast<std::uint32_t>(std::min<std::uint64_t>(block_elements, end - at)),
             number});
    }
    all.tensors.push_back(entry);
    for (std::uint64_t at = tensor.offset; at < end;) {
      const std::uint64_t next = std::min(end, (at / tile_elements + 1) * tile_elements);
      all.tiles.push_back({at, static_cast<std::uint32_t>(next - at), number});
      at = next;
    }
  }
  return all;
}

// Places for arrays one behind the other, each at a multiple of 256 bytes.
class Layout {
 public:
  template <class T>
  std::size_t place(std::size_t count) {
    const std::size_t at = size_;
    size_ += (count * sizeof(T) + 255) / 256 * 256;
    return at;
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

template <class T>
void put(std::span<std::byte> to, std::size_t at, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(to.data() + at, values.data(), values.size() * sizeof(T));
}

}  // namespace

UpdateWorkspaces::Workspace UpdateWorkspaces::make(const UpdateTable& table) {
  const Cut all = cut(table);
  Layout layout;
  const std::size_t blocks = layout.place<Stretch>(all.blocks.size());
  const std::size_t tiles = layout.place<Stretch>(all.tiles.size());
  const std::size_t tensors = layout.place<TensorEntry>(all.tensors.size());
  const std::size_t copied = layout.size();
  const std::size_t sums = layout.place<BlockSums>(all.blocks.size());
  const std::size_t rates = layout.place<float>(all.tensors.size());

  Workspace made;
  made.memory = device_.allocate(layout.size(), MemoryKind::device);
  if (copied > 0) {
    const Memory staging = device_.allocate(copied, MemoryKind::pinned);
    put(staging.bytes(), blocks, all.blocks);
    put(staging.bytes(), tiles, all.tiles);
    put(staging.bytes(), tensors, all.tensors);
    const CurrentDevice current(index_);
    const StreamHandle stream = make_stream_handle();
    check(cudaMemcpyAsync(made.memory.data(), staging.data(), copied, cudaMemcpyHostToDevice,
                          stream.get()),
          "copy the table of parameters to a CUDA device");
    EventPoints points(index_, "copy the table of parameters to a CUDA device");
    const std::uint64_t point = points.record(stream.get());
    if (!points.wait(point, device_patience))
      throw RunError("copy the table of parameters to a CUDA device", "the device does not end it");
  }
  std::byte* const base = made.memory.data();
  made.tables = {.blocks = reinterpret_cast<const Stretch*>(base + blocks),
                 .block_count = static_cast<std::uint32_t>(all.blocks.size()),
                 .tiles = reinterpret_cast<const Stretch*>(base + tiles),
                 .tile_count = static_cast<std::uint32_t>(all.tiles.size()),
                 .tensors = reinterpret_cast<const TensorEntry*>(base + tensors),
                 .tensor_count = static_cast<std::uint32_t>(all.tensors.size()),
                 .elements = table.elements(),
                 .sums = reinterpret_cast<BlockSums*>(base + sums),
                 .rates = reinterpret_cast<float*>(base + rates)};
  return made;
}

const UpdateTables& UpdateWorkspaces::of(const UpdateTable& table) {
  const std::lock_guard lock(mutex_);
  const auto found = workspaces_.find(table.identity());
  if (found != workspaces_.end()) return found->second.tables;
  std::erase_if(workspaces_, [](const auto& entry) { return entry.first.expired(); });
  return workspaces_.emplace(table.identity(), make(table)).first->second.tables;
}

}  // namespace paceline::runtime::cuda
