// Any bytes as a tf.Example: a label within the classes and an image within the message, or an
// InputError.
#include <cstddef>
#include <cstdint>

#include "models/base/error.h"
#include "runtime/training/data/example.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  constexpr int classes = 10;
  try {
    runtime::ExampleReader reader;
    const runtime::LabelledJpeg sample = reader.parse({data, size}, classes, "record");
    PACELINE_ASSERT(sample.label >= 0 && sample.label < classes, "a label is of a class");
    PACELINE_ASSERT(sample.jpeg.size() <= size, "an image is a part of its record");
  } catch (const InputError&) {
  }
  return 0;
}
