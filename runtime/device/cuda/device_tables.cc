// Tests: tests/cuda/device/update_test.cc.
#include "runtime/device/cuda/device_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
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

// Tiles of a tensor: they begin at multiples of tile_elements, or where the tensor does.
void cut_in_order(std::uint32_t tensor, std::uint64_t first, std::uint64_t end,
                  std::vector<Stretch>& tiles) {
  for (std::uint64_t at = first; at < end;) {
    const std::uint64_t next = std::min(end, (at / tile_elements + 1) * tile_elements);
    tiles.push_back({at, static_cast<std::uint32_t>(next - at), tensor});
    at = next;
  }
}

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
    cut_in_order(number, tensor.offset, end, all.tiles);
  }
  return all;
}

// Whole rows of a filter in each tile, as many as there is room for. A multiple of eight of them
// begins at a multiple of 16 bytes in the copy, and one of four in the master.
std::uint64_t rows_of_tile(const WorkingCopy& copy) {
  const std::uint64_t rows = tile_elements / copy.pixels;
  return rows < 4 ? rows : rows < 8 ? 4 : rows / 8 * 8;
}

std::vector<Stretch> cut(const WorkingCopies& table) {
  std::vector<Stretch> tiles;
  for (const WorkingCopy& copy : table.copies()) {
    const auto number = static_cast<std::uint32_t>(&copy - table.copies().data());
    const std::uint64_t end = copy.offset + copy.elements();
    const std::uint64_t step = rows_of_tile(copy) * copy.pixels;
    if (copy.is_in_order() || step == 0) {
      cut_in_order(number, copy.offset, end, tiles);
      continue;
    }
    for (std::uint64_t at = copy.offset; at < end; at += step)
      tiles.push_back({at, static_cast<std::uint32_t>(std::min(step, end - at)), number});
  }
  return tiles;
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

// Tiles of one cast. Where the arrays are in step, tiles begin where pieces do.
template <class Sink>
void cut(const Cast& cast, Sink&& sink) {
  const std::size_t source_size = bytes_of(cast.source.type);
  const std::size_t target_size = bytes_of(cast.target.type);
  const auto width = static_cast<unsigned>(16 / std::min(source_size, target_size));
  const Pieces all = pieces_of(width, cast.source.elements, cast.target.data, target_size,
                               cast.source.data, source_size);
  for (std::uint64_t at = 0; at < all.elements;) {
    const std::uint64_t next =
        std::min(all.elements, (at + all.skew) / cast_tile_elements * cast_tile_elements +
                                   cast_tile_elements - all.skew);
    sink(CastTile{
        .source = cast.source.data + at * source_size,
        .target = cast.target.data + at * target_size,
        .pieces = {.elements = next - at, .skew = at == 0 ? all.skew : 0, .width = all.width}});
    at = next;
  }
}

}  // namespace

Memory DeviceTables::upload(std::span<const std::byte> bytes, std::size_t size) {
  constexpr const char* operation = "copy a table of tensors to a CUDA device";
  Memory memory = device_.allocate(size, MemoryKind::device);
  if (bytes.empty()) return memory;
  const Memory staging = device_.allocate(bytes.size(), MemoryKind::pinned);
  std::ranges::copy(bytes, staging.bytes().begin());
  const CurrentDevice current(index_);
  const StreamHandle stream = make_stream_handle();
  check(cudaMemcpyAsync(memory.data(), staging.data(), bytes.size(), cudaMemcpyHostToDevice,
                        stream.get()),
        operation);
  EventPoints points(index_, operation);
  if (!points.wait(points.record(stream.get()), device_patience))
    throw RunError(operation,
                   fmt::format("the device was not done in {:g} s", device_patience.value()));
  return memory;
}

DeviceTables::Kept<UpdateTables> DeviceTables::make(const UpdateTable& table) {
  const Cut all = cut(table);
  Layout layout;
  const std::size_t blocks = layout.place<Stretch>(all.blocks.size());
  const std::size_t tiles = layout.place<Stretch>(all.tiles.size());
  const std::size_t tensors = layout.place<TensorEntry>(all.tensors.size());
  std::vector<std::byte> bytes(layout.size());
  put(bytes, blocks, all.blocks);
  put(bytes, tiles, all.tiles);
  put(bytes, tensors, all.tensors);
  const std::size_t sums = layout.place<BlockSums>(all.blocks.size());
  const std::size_t rates = layout.place<float>(all.tensors.size());

  Memory memory = upload(bytes, layout.size());
  std::byte* const base = memory.data();
  return {std::move(memory),
          {.blocks = reinterpret_cast<const Stretch*>(base + blocks),
           .block_count = static_cast<std::uint32_t>(all.blocks.size()),
           .tiles = reinterpret_cast<const Stretch*>(base + tiles),
           .tile_count = static_cast<std::uint32_t>(all.tiles.size()),
           .tensors = reinterpret_cast<const TensorEntry*>(base + tensors),
           .tensor_count = static_cast<std::uint32_t>(all.tensors.size()),
           .elements = table.elements(),
           .sums = reinterpret_cast<BlockSums*>(base + sums),
           .rates = reinterpret_cast<float*>(base + rates)}};
}

DeviceTables::Kept<CastTiles> DeviceTables::make(const CastTable& table) {
  std::vector<CastTile> tiles;
  for (const Cast& cast : table.casts())
    cut(cast, [&](const CastTile& tile) { tiles.push_back(tile); });
  Memory memory = upload(std::as_bytes(std::span(tiles)), tiles.size() * sizeof(CastTile));
  const auto* const first = reinterpret_cast<const CastTile*>(memory.data());
  return {std::move(memory),
          {.tiles = first, .tile_count = static_cast<std::uint32_t>(tiles.size())}};
}

DeviceTables::Kept<CopyTables> DeviceTables::make(const WorkingCopies& table) {
  const std::vector<Stretch> all = cut(table);
  std::vector<CopyEntry> made;
  std::size_t staged_number = 0;  // bytes of the widest that goes through shared memory
  for (const WorkingCopy& copy : table.copies()) {
    made.push_back({.target = copy.target.data,
                    .first = copy.offset,
                    .channels = static_cast<std::uint32_t>(copy.channels),
                    .pixels = static_cast<std::uint32_t>(copy.pixels),
                    .stored_channels = static_cast<std::uint32_t>(copy.stored_channels),
                    .type = copy.target.type,
                    .in_order = copy.is_in_order()});
    if (!copy.is_in_order()) staged_number = std::max(staged_number, bytes_of(copy.target.type));
  }
  Layout layout;
  const std::size_t tiles = layout.place<Stretch>(all.size());
  const std::size_t entries = layout.place<CopyEntry>(made.size());
  std::vector<std::byte> bytes(layout.size());
  put(bytes, tiles, all);
  put(bytes, entries, made);
  Memory memory = upload(bytes, layout.size());
  std::byte* const base = memory.data();
  return {std::move(memory),
          {.tiles = reinterpret_cast<const Stretch*>(base + tiles),
           .tile_count = static_cast<std::uint32_t>(all.size()),
           .entries = reinterpret_cast<const CopyEntry*>(base + entries),
           .entry_count = static_cast<std::uint32_t>(made.size()),
           .shared_bytes = static_cast<std::uint32_t>(staged_elements * staged_number)}};
}

template <class Content, class Table>
const Content& DeviceTables::find_or_make(Cache<Content>& cache, const Table& table) {
  const std::lock_guard lock(mutex_);
  const auto found = cache.find(table.identity());
  if (found != cache.end()) return found->second.content;
  std::erase_if(cache, [](const auto& entry) { return entry.first.expired(); });
  return cache.emplace(table.identity(), make(table)).first->second.content;
}

const UpdateTables& DeviceTables::of(const UpdateTable& table) {
  return find_or_make(updates_, table);
}

const CastTiles& DeviceTables::of(const CastTable& table) {
  return find_or_make(casts_, table);
}

const CopyTables& DeviceTables::of(const WorkingCopies& table) {
  return find_or_make(copies_, table);
}

}  // namespace paceline::runtime::cuda
