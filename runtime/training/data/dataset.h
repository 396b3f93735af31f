// Labelled images, or texts: what a training job reads. A dataset is two parts of samples, each decoded to a
// float image, or to a sequence of tokens, on demand, by any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "models/network/shape.h"

namespace paceline::runtime {

enum class Part { training, test };

// Random changes of a training image. None by default.
struct Augmentation {
  int crop_padding =
      0;              // pads by this many zeros on each side and crops at a random place (He 2015)
  bool flip = false;  // left to right, with probability 1/2
  // Crops a random area (scale 8% to 100%, aspect 3/4 to 4/3) and resizes it (Szegedy 2014), as the
  // ImageNet papers do; without, the image is resized to 256/224 of the size and cropped in the
  // middle. Only for images of any size, those of folders and TFRecord files.
  bool random_resized_crop = false;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  [[nodiscard]] virtual std::string name() const = 0;  // as the user gave it
  [[nodiscard]] virtual models::Shape sample() const = 0;
  [[nodiscard]] virtual int classes() const = 0;
  [[nodiscard]] virtual int labels() const { return 1; }  // of a sample
  [[nodiscard]] virtual std::int64_t size(Part part) const = 0;

  // Decodes sample `index` into `image` (channels x height x width, normalised by the dataset's
  // mean and deviation; or the numbers of a sequence's tokens), and writes its labels. `seed` draws the augmentation;
  // the same arguments give the same bits. Thread safe. Throws InputError that names the file and sample if it is
  // damaged.
  virtual void read(Part part, std::int64_t index, const Augmentation& augmentation,
                    std::uint64_t seed, std::span<float> image,
                    std::span<std::int32_t> labels) const = 0;
  // The same for samples of one label, which is returned.
  std::int32_t read(Part part, std::int64_t index, const Augmentation& augmentation,
                    std::uint64_t seed, std::span<float> image) const {
    std::int32_t label = 0;
    read(part, index, augmentation, seed, image, std::span(&label, 1));
    return label;
  }
};

struct DatasetRequest {
  // "fashion-mnist", "synthetic" or "synthetic:SAMPLES" (of each part), a folder (ImageNet's layout: train/CLASS/*.jpg, val/CLASS/*.jpg),
  // a folder of TFRecord files (train-*, validation-*), or "text:FILE".
  std::string source;
  models::Shape sample;                   // that the network takes
  int classes = 10;                       // that the network tells apart
  std::uint64_t seed = 1;                 // of synthetic data
  std::int64_t synthetic_samples = 1024;  // of each part
};

// Checks what can be checked without decoding everything: sizes of files, headers, labels in range.
// Throws InputError with file and place, and says what would be right.
[[nodiscard]] std::unique_ptr<Dataset> open_dataset(const DatasetRequest& request);

}  // namespace paceline::runtime
