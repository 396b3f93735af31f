// Tests: tests/runtime/device/cpu_device_test.cc.
#include "runtime/device/working_copies.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "models/base/error.h"

namespace paceline::runtime {

WorkingCopies::WorkingCopies(std::vector<WorkingCopy> copies)
    : identity_(std::make_shared<char>()), copies_(std::move(copies)) {
  for (const WorkingCopy& copy : copies_) {
    PACELINE_ASSERT(copy.channels > 0 && copy.pixels > 0 && copy.channels <= copy.stored_channels &&
                        copy.target.elements == copy.outputs * copy.pixels * copy.stored_channels,
                    "a copy has room for all channels");
    PACELINE_ASSERT(copy.target.elements <= std::numeric_limits<std::uint32_t>::max(),
                    "places in a copy are numbers of 32 bits");
  }
}

bool WorkingCopies::are_of(const UpdateTable& table) const {
  return std::ranges::equal(
      table.tensors(), copies_, [](const UpdatedTensor& tensor, const WorkingCopy& copy) {
        return tensor.offset == copy.offset && tensor.elements == copy.elements();
      });
}

}  // namespace paceline::runtime
