// Tables of kernels in memory of a CUDA device: those of updates, with room for norms and rates, those
// of working copies, and those of many casts. Made at the first kernel with a table, and kept for as long as the table
// lives.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "runtime/device/cuda/bodies/cast_tiles.h"
#include "runtime/device/cuda/bodies/copy_tables.h"
#include "runtime/device/cuda/bodies/update_table.h"
#include "runtime/device/device.h"

namespace paceline::runtime::cuda {

// Thread safety: any thread may call.
class DeviceTables {
 public:
  // The device, whose number is `index`, outlives this.
  DeviceTables(Device& device, int index) : device_(device), index_(index) {}

  // The first call for a table allocates, copies and waits. Throws RunError.
  [[nodiscard]] const UpdateTables& of(const UpdateTable& table);
  [[nodiscard]] const CastTiles& of(const CastTable& table);
  [[nodiscard]] const CopyTables& of(const WorkingCopies& table);

 private:
  template <class Content>
  struct Kept {
    Memory memory;
    Content content;
  };
  // By the tables' identities. Those of tables that are gone are dropped when another is made.
  template <class Content>
  using Cache = std::map<std::weak_ptr<const void>, Kept<Content>, std::owner_less<>>;

  template <class Content, class Table>
  [[nodiscard]] const Content& find_or_make(Cache<Content>& cache, const Table& table);
  [[nodiscard]] Kept<UpdateTables> make(const UpdateTable& table);
  [[nodiscard]] Kept<CastTiles> make(const CastTable& table);
  [[nodiscard]] Kept<CopyTables> make(const WorkingCopies& table);
  // Memory of the device that begins with these bytes; `size` of it in all.
  [[nodiscard]] Memory upload(std::span<const std::byte> bytes, std::size_t size);

  Device& device_;
  int index_;
  std::mutex mutex_;
  Cache<UpdateTables> updates_;
  Cache<CastTiles> casts_;
  Cache<CopyTables> copies_;
};

}  // namespace paceline::runtime::cuda
