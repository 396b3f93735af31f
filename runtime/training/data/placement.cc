#include "runtime/training/data/placement.h"

#include "models/base/error.h"
#include "models/base/random.h"
#include "models/base/to_size.h"

namespace paceline::runtime {

Placement drawn_placement(const Augmentation& augmentation, std::uint64_t seed) {
  Placement placement;
  if (augmentation.crop_padding <= 0 && !augmentation.flip) return placement;
  Random random(seed);
  if (augmentation.crop_padding > 0) {
    const auto shift = [&] {
      const auto places = 2 * to_size(augmentation.crop_padding) + 1;
      return static_cast<std::int64_t>(random.below(places)) - augmentation.crop_padding;
    };
    placement.down = shift();
    placement.right = shift();
  }
  placement.flip = augmentation.flip && random.below(2) == 1;
  return placement;
}

void place_bytes(std::span<const std::uint8_t> pixels, const models::Shape& shape,
                 const Placement& placement, std::span<const Normalisation> normalisation,
                 std::span<float> image) {
  const auto elements = to_size(shape.elements());
  PACELINE_ASSERT(pixels.size() == elements && image.size() == elements, "a whole image is placed");
  const std::uint8_t* bytes = pixels.data();
  if (shape.channels == 1) {  // apart, because it vectorises
    place(shape, placement, image,
          [bytes, width = shape.width, of = normalisation[0]](std::int64_t, std::int64_t y,
                                                              std::int64_t x) {
            return static_cast<float>(bytes[y * width + x]) * of.scale + of.bias;
          });
    return;
  }
  place(shape, placement, image, [&](std::int64_t channel, std::int64_t y, std::int64_t x) {
    const Normalisation& of = normalisation[to_size(channel)];
    return static_cast<float>(bytes[(y * shape.width + x) * shape.channels + channel]) * of.scale +
           of.bias;
  });
}

}  // namespace paceline::runtime
