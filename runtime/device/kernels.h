// Kernels as values: what a stream of a device can be asked to compute, with the arrays that it
// reads and writes.
//
// A kernel says what is computed and not how: each device has its own code for it, and all have the
// same numbers as runtime/tensor/kernels.h, which says how is rounded. That a kernel is a value is
// what lets a stream keep it for later, and tests know which memory it will touch.
//
// Arrays of a kernel are of one length and do not overlap, unless said so. They are in memory that
// the device takes (Device::takes), and stay there until the kernel is done. Cast is in cast_table.h.
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "runtime/device/cast_table.h"
#include "runtime/device/memory.h"
#include "runtime/device/parameter_update.h"
#include "runtime/device/working_copies.h"

namespace paceline::runtime {

// Many casts at once: packs tensors into a bucket, or unpacks them. The casts are in no order. The
// table outlives the kernel.
struct CastMany {
  const CastTable* table = nullptr;
};

// target[i] = target[i] + source[i]. The sum is in FP32 and rounded to the target's type, which is
// the source's, or FP32 for sums of more than two that are rounded once, when they are done.
struct Add {
  ConstArrayView source;
  ArrayView target;
};

// Sets *found to 1 if an element of the FP32 array is NaN or infinite, and leaves it otherwise.
// `found` is in host or pinned memory.
struct FindNotFinite {
  ConstArrayView values;
  std::uint32_t* found = nullptr;
};

// target[i] = source[i] * factor in FP32, and sets *found to 1 if a result is NaN or infinite: how
// gradients come back from the wire. The target is FP32, and may be the source itself. `found` as
// above.
struct Unscale {
  ConstArrayView source;
  ArrayView target;
  float factor = 1;
  std::uint32_t* found = nullptr;
};

// target[i] = value, for FP32 arrays.
struct Fill {
  ArrayView target;
  float value = 0;
};

// One step of an optimizer on the flat FP32 arrays of all parameters (parameter_update.h). The
// table outlives the kernel; kernels with copies of one table wait for each other, as a device may
// work in memory of the table. `mean_square` is empty unless the rule has RMSprop. `copies` is null,
// or says for each tensor of the table where its new weights go besides, rounded; it outlives the
// kernel, too.
struct UpdateParameters {
  const UpdateTable* table = nullptr;
  UpdateRule rule;
  ArrayView weights;
  ConstArrayView gradients;
  ArrayView momentum;
  ArrayView mean_square;
  const WorkingCopies* copies = nullptr;
};

using Kernel = std::variant<Cast, CastMany, Add, FindNotFinite, Unscale, Fill, UpdateParameters>;

// The memory that a kernel touches.
struct MemoryAccess {
  std::span<const std::byte> bytes;
  MemoryKind kind = MemoryKind::host;
  bool writes = false;
};

// Calls sink(MemoryAccess) for each range that the kernel reads or writes.
template <class Sink>
void for_each_access(const Kernel& kernel, Sink&& sink) {
  const auto read = [&](const ConstArrayView& a) {
    sink(MemoryAccess{{a.data, a.bytes()}, a.kind});
  };
  const auto write = [&](const ArrayView& a) {
    sink(MemoryAccess{{a.data, a.bytes()}, a.kind, true});
  };
  struct Visitor {
    decltype(read)& reads;
    decltype(write)& writes;
    Sink& sink;
    void operator()(const Cast& k) const { reads(k.source), writes(k.target); }
    void operator()(const CastMany& k) const {
      for (const Cast& cast : k.table->casts()) reads(cast.source), writes(cast.target);
    }
    void operator()(const Add& k) const { reads(k.source), writes(k.target); }
    void operator()(const Fill& k) const { writes(k.target); }
    void operator()(const UpdateParameters& k) const {
      writes(k.weights), reads(k.gradients), writes(k.momentum), writes(k.mean_square);
      if (k.copies == nullptr) return;
      for (const WorkingCopy& copy : k.copies->copies()) writes(copy.target);
    }
    void operator()(const FindNotFinite& k) const { reads(k.values), finds(k.found); }
    void operator()(const Unscale& k) const { reads(k.source), writes(k.target), finds(k.found); }
    void finds(std::uint32_t* found) const {
      sink(MemoryAccess{std::as_bytes(std::span(found, 1)), MemoryKind::pinned, true});
    }
  };
  std::visit(Visitor{read, write, sink}, kernel);
}

}  // namespace paceline::runtime
