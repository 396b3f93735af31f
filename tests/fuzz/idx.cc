// Any bytes as IDX files, gzip or not: as many elements as the header says, or an InputError.
#include <cstddef>
#include <cstdint>

#include "models/base/error.h"
#include "runtime/training/data/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  using namespace paceline::runtime;
  constexpr std::size_t most = 1 << 20;
  try {
    const IdxImages images = parse_idx_images({data, data + size}, "images", most);
    PACELINE_ASSERT(images.pixels().size() ==
                        static_cast<std::size_t>(images.count * images.height * images.width),
                    "each image has its pixels");
    PACELINE_ASSERT(images.image(images.count - 1).size() > 0, "the last image is whole");
  } catch (const InputError&) {
  }
  try {
    PACELINE_ASSERT(!parse_idx_labels({data, data + size}, "labels", most).empty(),
                    "there are labels");
  } catch (const InputError&) {
  }
  return 0;
}
