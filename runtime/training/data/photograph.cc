#include "runtime/training/data/photograph.h"

#include <algorithm>
#include <array>

#include "models/base/error.h"
#include "models/base/seeds.h"
#include "runtime/training/data/placement.h"

namespace paceline::runtime {
namespace {

// Mean and deviation of red, green and blue in ImageNet's training set, in 0 to 1
// (github.com/pytorch/examples, imagenet/main.py; first in
// github.com/facebookarchive/fb.resnet.torch, datasets/imagenet.lua).
const std::array<Normalisation, 3> imagenet{Normalisation::of(0.485, 0.229),
                                            Normalisation::of(0.456, 0.224),
                                            Normalisation::of(0.406, 0.225)};

// The region in an image that was scaled, and lies in it whatever was rounded.
Region scaled(const Region& region, const JpegHeader& whole, const RgbImage& image) {
  const double across = static_cast<double>(image.width) / whole.width;
  const double down = static_cast<double>(image.height) / whole.height;
  Region result{region.left * across, region.top * down, region.width * across,
                region.height * down};
  result.width = std::min(result.width, image.width - result.left);
  result.height = std::min(result.height, image.height - result.top);
  return result;
}

}  // namespace

void check_takes_photographs(const DatasetRequest& request) {
  if (request.sample.is_image && request.sample.channels == 3) return;
  throw InputError(
      InputPlace{.file = request.source},
      "has images of 3 channels, but the network takes " + models::to_text(request.sample),
      "choose a network for these images, or images for the network");
}

void PhotographReader::read(std::span<const std::uint8_t> jpeg, const std::string& name,
                            const models::Shape& shape, const Augmentation& augmentation,
                            std::uint64_t seed, std::span<float> image) {
  const JpegHeader header = decoder_.header(jpeg, name);
  const Region region = augmentation.random_resized_crop
                            ? random_region(header.height, header.width, shape, mixed_seed(seed, 1))
                            : middle_region(header.height, header.width, shape);
  const RgbImage& decoded = decoder_.decode(jpeg, header, eighths_enough(region, shape), name);
  resampler_.resample(decoded, scaled(region, header, decoded), static_cast<int>(shape.height),
                      static_cast<int>(shape.width), pixels_);
  place_bytes(pixels_, shape, drawn_placement(augmentation, seed), imagenet, image);
}

}  // namespace paceline::runtime
