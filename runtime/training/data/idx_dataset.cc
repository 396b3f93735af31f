#include "runtime/training/data/idx_dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/training/data/fit.h"
#include "runtime/training/data/idx.h"
#include "runtime/training/data/placement.h"

namespace paceline::runtime {
namespace {

struct IdxPart {
  IdxImages images;
  ByteVector labels;
};

// FOLDER/NAME, or else FOLDER/NAME.gz.
std::string found(const std::string& folder, const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::error_code error;
  if (std::filesystem::exists(path, error)) return path.string();
  if (std::filesystem::exists(path.string() + ".gz", error)) return path.string() + ".gz";
  throw InputError(InputPlace{.file = folder}, "has no " + name + " or " + name + ".gz",
                   "Fashion-MNIST is {train,t10k}-{images-idx3,labels-idx1}-ubyte");
}

IdxPart read_part(const std::string& folder, const std::string& part, int classes) {
  const std::string images_file = found(folder, part + "-images-idx3-ubyte");
  const std::string labels_file = found(folder, part + "-labels-idx1-ubyte");
  IdxPart result{.images = parse_idx_images(read_file(images_file, most_idx_bytes), images_file),
                 .labels = parse_idx_labels(read_file(labels_file, most_idx_bytes), labels_file)};
  if (to_size(result.images.count) != result.labels.size())
    throw InputError(
        InputPlace{.file = labels_file},
        fmt::format("has {} labels for {} images", result.labels.size(), result.images.count),
        "take both files of one dataset");
  for (std::size_t i = 0; i < result.labels.size(); ++i) {
    if (result.labels[i] < classes) continue;
    throw InputError(
        InputPlace{.file = labels_file}, fmt::format("sample {} has label {}", i, result.labels[i]),
        fmt::format("the network tells {} classes apart, 0 to {}", classes, classes - 1));
  }
  return result;
}

// Normalises by the mean and the deviation of all pixels, and by the mean alone where all are
// equal.
Normalisation normalisation_of(std::span<const std::uint8_t> pixels) {
  std::array<std::int64_t, 256> counts{};
  for (const std::uint8_t pixel : pixels) ++counts[pixel];
  double sum = 0;
  double squares = 0;
  for (std::size_t value = 0; value < counts.size(); ++value) {
    const double x = static_cast<double>(value) / 255;
    sum += x * static_cast<double>(counts[value]);
    squares += x * x * static_cast<double>(counts[value]);
  }
  const double mean = sum / static_cast<double>(pixels.size());
  const double variance = squares / static_cast<double>(pixels.size()) - mean * mean;
  constexpr double least_variance = 1e-9;  // rounding of one colour; one step of 255 is 1.5e-5
  return Normalisation::of(mean, variance > least_variance ? std::sqrt(variance) : 1);
}

class IdxDataset : public Dataset {
 public:
  IdxDataset(const DatasetRequest& request, IdxPart training, IdxPart test)
      : name_(request.source),
        sample_(request.sample),
        image_(models::Shape::image(1, training.images.height, training.images.width)),
        classes_(1 + *std::max_element(training.labels.begin(), training.labels.end())),
        normalisation_(normalisation_of(training.images.pixels())),
        training_(std::move(training)),
        test_(std::move(test)) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] models::Shape sample() const override { return sample_; }
  [[nodiscard]] int classes() const override { return classes_; }
  [[nodiscard]] std::int64_t size(Part part) const override { return of(part).images.count; }

  void read(Part part, std::int64_t index, const Augmentation& augmentation, std::uint64_t seed,
            std::span<float> image, std::span<std::int32_t> labels) const override {
    PACELINE_ASSERT(index >= 0 && index < size(part), "a sample is of the dataset");
    place_bytes(of(part).images.image(index), image_, drawn_placement(augmentation, seed),
                {&normalisation_, 1}, image);
    labels[0] = of(part).labels[to_size(index)];
  }

 private:
  [[nodiscard]] const IdxPart& of(Part part) const {
    return part == Part::training ? training_ : test_;
  }

  std::string name_;
  models::Shape sample_;  // as the network takes it: image_, or a vector
  models::Shape image_;
  int classes_;
  Normalisation normalisation_;
  IdxPart training_;
  IdxPart test_;
};

}  // namespace

bool is_idx_folder(const std::string& folder) {
  const std::filesystem::path images = std::filesystem::path(folder) / "train-images-idx3-ubyte";
  std::error_code error;
  return std::filesystem::exists(images, error) ||
         std::filesystem::exists(images.string() + ".gz", error);
}

std::unique_ptr<Dataset> open_idx_folder(const DatasetRequest& request, const std::string& folder) {
  IdxPart test = read_part(folder, "t10k", request.classes);
  check_shape(request, models::Shape::image(1, test.images.height, test.images.width));
  IdxPart training = read_part(folder, "train", request.classes);
  if (training.images.height != test.images.height || training.images.width != test.images.width)
    throw InputError(
        InputPlace{.file = folder},
        fmt::format("its training images are {}x{}, its test images {}x{}", training.images.height,
                    training.images.width, test.images.height, test.images.width),
        "take all files of one dataset");
  return std::make_unique<IdxDataset>(request, std::move(training), std::move(test));
}

}  // namespace paceline::runtime
