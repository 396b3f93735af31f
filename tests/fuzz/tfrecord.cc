// Any bytes as a TFRecord file: records that fill it, or an InputError. No byte beyond is read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/base/error.h"
#include "runtime/training/data/tfrecord.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  using namespace paceline::runtime;
  const RecordFile file{.name = "records",
                        .size = size,
                        .read = [&](std::uint64_t offset, std::span<std::uint8_t> bytes) {
                          PACELINE_ASSERT(offset <= size && bytes.size() <= size - offset,
                                          "reads stay within the file");
                          std::copy_n(data + offset, bytes.size(), bytes.begin());
                        }};
  try {
    std::uint64_t end = 0;
    std::vector<std::uint8_t> scratch;
    for (const RecordPlace& place : record_places(file)) {
      PACELINE_ASSERT(place.offset == end, "records follow one another");
      end += record_head + place.length + record_tail;
      PACELINE_ASSERT(read_record(file, place, scratch).size() == place.length, "data is whole");
    }
    PACELINE_ASSERT(end == size, "records fill the file");
  } catch (const InputError&) {
  }
  return 0;
}
