// Any bytes as a JPEG file: the same image or the same InputError each time, from a reader that has
// read it before.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "runtime/training/data/photograph.h"

namespace {

using namespace paceline;
using namespace paceline::runtime;

struct Outcome {
  std::vector<float> image;
  std::string error;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome(PhotographReader& reader, std::span<const std::uint8_t> jpeg) {
  const models::Shape shape = models::Shape::image(3, 12, 16);
  Outcome result;
  result.image.resize(static_cast<std::size_t>(shape.elements()));
  try {
    reader.read(jpeg, "photograph", shape, {.flip = true, .random_resized_crop = true}, 1,
                result.image);
  } catch (const InputError& error) {
    result = {{}, error.what()};
  }
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t most_pixels = 1 << 18;  // larger ones only take time
  const std::span<const std::uint8_t> jpeg(data, size);
  try {
    JpegDecoder decoder;
    const JpegHeader header = decoder.header(jpeg, "photograph");
    if (std::int64_t{header.width} * header.height > most_pixels) return 0;
  } catch (const InputError&) {
  }
  PhotographReader reader;
  const Outcome first = outcome(reader, jpeg);
  PACELINE_ASSERT(outcome(reader, jpeg) == first, "a reader does not remember");
  return 0;
}
