// Working copies of parameters: what a network computes from, while the optimizer has FP32 masters in
// a flat array. A table says where the copy of each tensor is, in which type and in which order, so
// that an update writes the copies together with the masters (UpdateParameters in kernels.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device/memory.h"
#include "runtime/device/parameter_update.h"

namespace paceline::runtime {

// The copy of one tensor. Element (o, c, p) of the master stands at
// offset + (o * channels + c) * pixels + p of the flat array, and that of the copy at
// (o * pixels + p) * stored_channels + c: from KCRS to KRSC for filters, whose pixels are rows times
// columns of the kernel. Channels of the copy from `channels` on are not written.
struct WorkingCopy {
  ArrayView target;  // outputs * pixels * stored_channels numbers
  std::size_t offset = 0;
  std::size_t outputs = 1;
  std::size_t channels = 1;
  std::size_t pixels = 1;
  std::size_t stored_channels = 1;

  // The copy of a tensor in the order of the master: one output, whose numbers are channels.
  [[nodiscard]] static WorkingCopy in_order(const ArrayView& target, std::size_t offset) {
    return {target, offset, 1, target.elements, 1, target.elements};
  }
  [[nodiscard]] std::size_t elements() const { return outputs * channels * pixels; }
  [[nodiscard]] bool is_in_order() const {
    return stored_channels == channels && (pixels == 1 || channels == 1);
  }
  // Where element i of the tensor stands in the copy.
  [[nodiscard]] std::size_t place_of(std::size_t i) const {
    const std::size_t row = i / pixels;
    return (row / channels * pixels + i % pixels) * stored_channels + row % channels;
  }
};

// The copies of all tensors, in the order of the tensors of an UpdateTable. They stay where they are,
// and none overlaps another. Made once; a device may keep a copy of it.
class WorkingCopies {
 public:
  WorkingCopies() = default;
  explicit WorkingCopies(std::vector<WorkingCopy> copies);

  // Tables with one identity are copies of each other. It expires with the last of them.
  [[nodiscard]] std::weak_ptr<const void> identity() const { return identity_; }
  [[nodiscard]] std::span<const WorkingCopy> copies() const { return copies_; }
  // Whether each tensor of the table has its copy here, at the same place.
  [[nodiscard]] bool are_of(const UpdateTable& table) const;

 private:
  std::shared_ptr<const void> identity_;
  std::vector<WorkingCopy> copies_;
};

}  // namespace paceline::runtime
