#include "runtime/training/data/synthetic.h"

#include <cmath>

#include "models/base/error.h"
#include "models/base/seeds.h"
#include "models/base/to_size.h"
#include "runtime/training/data/placement.h"

namespace paceline::runtime {
namespace {

// Uniform, of mean 0 and variance 1/2.
float centred(std::uint64_t bits) {
  constexpr float half_width = 1.2247449F;                          // sqrt(3/2)
  constexpr float part = half_width / static_cast<float>(1 << 23);  // of 2^24 values
  return static_cast<float>(bits >> 40) * part - half_width;
}

class SyntheticDataset : public Dataset {
 public:
  explicit SyntheticDataset(const DatasetRequest& request) : request_(request) {}

  [[nodiscard]] std::string name() const override { return request_.source; }
  [[nodiscard]] models::Shape sample() const override { return request_.sample; }
  [[nodiscard]] int classes() const override { return request_.classes; }
  [[nodiscard]] std::int64_t size(Part) const override { return request_.synthetic_samples; }

  void read(Part part, std::int64_t index, const Augmentation& augmentation, std::uint64_t seed,
            std::span<float> image, std::span<std::int32_t> labels) const override {
    const models::Shape& shape = request_.sample;
    PACELINE_ASSERT(index >= 0 && index < size(part), "a sample is of the dataset");
    PACELINE_ASSERT(image.size() == to_size(shape.elements()), "an image is whole");
    constexpr std::int64_t patches = 7;  // across, and down
    const std::int64_t patch_height = (shape.height + patches - 1) / patches;
    const std::int64_t patch_width = (shape.width + patches - 1) / patches;
    const auto label = static_cast<std::int32_t>(index % request_.classes);
    const std::uint64_t pattern =
        mixed_seed(mixed_seed(request_.seed, 0), static_cast<std::uint64_t>(label));
    const std::uint64_t noise =
        mixed_seed(mixed_seed(request_.seed, part == Part::training ? 1 : 2),
                   static_cast<std::uint64_t>(index));
    const auto number = [&](std::int64_t channel, std::int64_t y, std::int64_t x) {
      return static_cast<std::uint64_t>((channel * shape.height + y) * shape.width + x);
    };
    const Placement placement = shape.is_image ? drawn_placement(augmentation, seed) : Placement{};
    place(shape, placement, image, [&](std::int64_t channel, std::int64_t y, std::int64_t x) {
      return centred(mixed_seed(pattern, number(channel, y / patch_height, x / patch_width))) +
             centred(mixed_seed(noise, number(channel, y, x)));
    });
    labels[0] = label;
  }

 private:
  DatasetRequest request_;
};

// Sequences in which a token has one successor, three times of four, and any token otherwise.
class SyntheticSequences : public Dataset {
 public:
  explicit SyntheticSequences(const DatasetRequest& request) : request_(request) {}

  [[nodiscard]] std::string name() const override { return request_.source; }
  [[nodiscard]] models::Shape sample() const override { return request_.sample; }
  [[nodiscard]] int classes() const override { return request_.classes; }
  [[nodiscard]] int labels() const override { return static_cast<int>(request_.sample.height); }
  [[nodiscard]] std::int64_t size(Part) const override { return request_.synthetic_samples; }

  void read(Part part, std::int64_t index, const Augmentation& /*augmentation*/,
            std::uint64_t /*seed*/, std::span<float> tokens,
            std::span<std::int32_t> labels) const override {
    PACELINE_ASSERT(index >= 0 && index < size(part), "a sample is of the dataset");
    const auto count = static_cast<std::uint64_t>(request_.classes);
    const std::uint64_t successors = mixed_seed(request_.seed, 0);
    const std::uint64_t noise =
        mixed_seed(mixed_seed(request_.seed, part == Part::training ? 1 : 2),
                   static_cast<std::uint64_t>(index));
    std::uint64_t token = mixed_seed(noise, 0) % count;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<float>(token);
      const std::uint64_t drawn = mixed_seed(noise, i + 1);
      token = (drawn >> 62U) == 0 ? drawn % count : mixed_seed(successors, token) % count;
      labels[i] = static_cast<std::int32_t>(token);
    }
  }

 private:
  DatasetRequest request_;
};

}  // namespace

std::unique_ptr<Dataset> make_synthetic_dataset(const DatasetRequest& request) {
  if (request.synthetic_samples < 1)
    throw InputError(std::to_string(request.synthetic_samples) + " synthetic samples in each part",
                     "ask for 1 or more");
  if (request.classes < 1)
    throw InputError(std::to_string(request.classes) + " classes",
                     "a network tells 1 or more apart");
  if (request.sample.channels < 1 || request.sample.height < 1 || request.sample.width < 1)
    throw InputError("a sample of shape " + models::to_text(request.sample),
                     "every dimension is 1 or more");
  if (request.sample.is_sequence) return std::make_unique<SyntheticSequences>(request);
  return std::make_unique<SyntheticDataset>(request);
}

}  // namespace paceline::runtime
