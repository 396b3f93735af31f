// Turns the bytes of a JPEG file into the input of a network: decodes, crops, resizes, normalises.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/training/data/crop.h"
#include "runtime/training/data/dataset.h"
#include "runtime/training/data/jpeg.h"

namespace paceline::runtime {

// Throws InputError unless the network takes images of 3 channels.
void check_takes_photographs(const DatasetRequest& request);

// One thread at a time uses it. It keeps its memory between images.
class PhotographReader {
 public:
  // `image` is (3, height, width) of `shape`, normalised by the mean and the deviation of
  // ImageNet's training set. Throws InputError that gives `name` if the image is damaged.
  void read(std::span<const std::uint8_t> jpeg, const std::string& name, const models::Shape& shape,
            const Augmentation& augmentation, std::uint64_t seed, std::span<float> image);

 private:
  JpegDecoder decoder_;
  Resampler resampler_;
  ByteVector pixels_;
};

}  // namespace paceline::runtime
