// The place of each pixel of an image after a crop with padding and a flip. Bytes of files and
// synthetic pixels share this definition.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "models/network/shape.h"
#include "runtime/training/data/dataset.h"

namespace paceline::runtime {

// Pixel (y, x) of the result is pixel (y + down, x + right) of the image, zero outside of it; then
// the result is mirrored left to right if `flip`.
struct Placement {
  std::int64_t down = 0;
  std::int64_t right = 0;
  bool flip = false;
};

// Uniform in [-crop_padding, crop_padding] each way, flipped with probability 1/2; a function of
// the seed. The default if nothing is augmented.
[[nodiscard]] Placement drawn_placement(const Augmentation& augmentation, std::uint64_t seed);

// Writes `shape` (channels x height x width) of pixel(channel, y, x) to `image`, placed.
template <class Pixel>
void place(const models::Shape& shape, const Placement& placement, std::span<float> image,
           Pixel pixel) {
  const std::int64_t height = shape.height;
  const std::int64_t width = shape.width;
  const std::int64_t first = std::clamp<std::int64_t>(-placement.right, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(width - placement.right, first, width);
  float* row = image.data();
  for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
    for (std::int64_t y = 0; y < height; ++y, row += width) {
      const std::int64_t from_y = y + placement.down;
      if (from_y < 0 || from_y >= height) {
        std::fill_n(row, width, 0.0F);
        continue;
      }
      std::fill_n(row, first, 0.0F);
      for (std::int64_t x = first; x < last; ++x)
        row[x] = pixel(channel, from_y, x + placement.right);
      std::fill(row + last, row + width, 0.0F);
      if (placement.flip) std::reverse(row, row + width);
    }
  }
}

// value = byte * scale + bias: (byte / 255 - mean) / deviation, of one channel.
struct Normalisation {
  float scale = 1;
  float bias = 0;

  [[nodiscard]] static Normalisation of(double mean, double deviation) {
    return {static_cast<float>(1 / (255 * deviation)), static_cast<float>(-mean / deviation)};
  }
};

// Places `pixels` (height x width x channels), normalised by channel, in `image` (channels x
// height x width).
void place_bytes(std::span<const std::uint8_t> pixels, const models::Shape& shape,
                 const Placement& placement, std::span<const Normalisation> normalisation,
                 std::span<float> image);

}  // namespace paceline::runtime
