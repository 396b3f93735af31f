// Memory that kernels work on and messages travel in, and views of arrays of numbers in it.
//
// Three kinds: `host` is ordinary memory of the process; `pinned` is host memory that a device
// reads and writes, too; `device` is memory of the device, which the host must not touch. On a CPU
// all memory is host memory.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "models/base/error.h"
#include "runtime/tensor/kernels.h"

namespace paceline::runtime {

enum class MemoryKind { host, pinned, device };

[[nodiscard]] std::string_view name(MemoryKind kind);

// A set of kinds: what a transport or a device takes.
class MemoryKinds {
 public:
  constexpr MemoryKinds(std::initializer_list<MemoryKind> kinds) {
    for (const MemoryKind kind : kinds) bits_ |= bit(kind);
  }
  [[nodiscard]] constexpr bool contains(MemoryKind kind) const { return (bits_ & bit(kind)) != 0; }

 private:
  [[nodiscard]] static constexpr unsigned bit(MemoryKind kind) {
    return 1U << static_cast<unsigned>(kind);
  }
  unsigned bits_ = 0;
};

// An array of numbers that is somewhere and not owned.
template <class Byte>
struct BasicArrayView {
  Byte* data = nullptr;
  NumberType type = NumberType::fp32;
  std::size_t elements = 0;
  MemoryKind kind = MemoryKind::host;

  [[nodiscard]] std::size_t bytes() const { return elements * bytes_of(type); }
  [[nodiscard]] BasicArrayView part(std::size_t first, std::size_t count) const {
    return {data + first * bytes_of(type), type, count, kind};
  }
  operator BasicArrayView<const std::byte>() const requires(!std::is_const_v<Byte>) {
    return {data, type, elements, kind};
  }
};

using ArrayView = BasicArrayView<std::byte>;             // to be read and written
using ConstArrayView = BasicArrayView<const std::byte>;  // to be read

// Views of arrays of the host.
[[nodiscard]] inline ConstArrayView view_of(std::span<const float> values) {
  return {reinterpret_cast<const std::byte*>(values.data()), NumberType::fp32, values.size(),
          MemoryKind::host};
}
[[nodiscard]] inline ArrayView view_of(std::span<float> values) {
  return {reinterpret_cast<std::byte*>(values.data()), NumberType::fp32, values.size(),
          MemoryKind::host};
}

// The numbers of an FP32 array that the host may touch. Whoever calls it has waited for the kernels
// that write them.
[[nodiscard]] inline std::span<const float> host_floats(const ConstArrayView& view) {
  PACELINE_ASSERT(view.kind != MemoryKind::device && view.type == NumberType::fp32,
                  "the host reads FP32 arrays that are not in device memory");
  return {reinterpret_cast<const float*>(view.data), view.elements};
}
[[nodiscard]] inline std::span<float> host_floats(const ArrayView& view) {
  PACELINE_ASSERT(view.kind != MemoryKind::device && view.type == NumberType::fp32,
                  "the host writes FP32 arrays that are not in device memory");
  return {reinterpret_cast<float*>(view.data), view.elements};
}

// Owns memory of one kind.
class Memory {
 public:
  using Release = std::function<void(std::byte*)>;

  Memory() = default;
  Memory(std::byte* data, std::size_t size, MemoryKind kind, Release release)
      : data_(data, std::move(release)), size_(size), kind_(kind) {}

  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] MemoryKind kind() const { return kind_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_.get(), size_}; }
  // The memory as an array of as many numbers as fit.
  [[nodiscard]] ArrayView array(NumberType type) const {
    return {data_.get(), type, size_ / bytes_of(type), kind_};
  }

 private:
  std::unique_ptr<std::byte, Release> data_ = {nullptr, [](std::byte*) {}};
  std::size_t size_ = 0;
  MemoryKind kind_ = MemoryKind::host;
};

// Host memory that is not zeroed: a page comes when it is touched.
//
// It is in huge pages where the kernel has them. Open MPI lets the kernel copy a large message from
// one process to another, which looks each page up: with small pages that takes a third longer (2
// ranks, 4 MiB, November 2026). Throws std::bad_alloc.
[[nodiscard]] Memory host_memory(std::size_t bytes);

}  // namespace paceline::runtime
