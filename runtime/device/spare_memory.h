// Host memory that is used again and again for arrays that come and go.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/device/memory.h"

namespace paceline::runtime {

// Thread safety: none.
class SpareMemory {
 public:
  // Returns the smallest spare memory that has at least this many bytes. Where all are too small, new memory takes the
  // place of the largest.
  [[nodiscard]] Memory take(std::size_t bytes);
  // Does nothing with a Memory that is empty.
  void put_back(Memory&& memory);

 private:
  std::vector<Memory> all_;  // by size
};

}  // namespace paceline::runtime
