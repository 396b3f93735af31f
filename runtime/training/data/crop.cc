#include "runtime/training/data/crop.h"

#include <algorithm>
#include <cmath>

#include "models/base/error.h"
#include "models/base/random.h"
#include "models/base/to_size.h"

namespace paceline::runtime {
namespace {

double ratio_of(const models::Shape& shape) {
  return static_cast<double>(shape.width) / static_cast<double>(shape.height);
}

// The largest region of that ratio of the sides, width to height, times `part`.
Region centred_region(int height, int width, double ratio, double part) {
  const double largest_width = std::min(static_cast<double>(width), height * ratio);
  const double region_width = part * largest_width;
  const double region_height = part * std::min(static_cast<double>(height), largest_width / ratio);
  return {(width - region_width) / 2, (height - region_height) / 2, region_width, region_height};
}

}  // namespace

Region middle_region(int height, int width, const models::Shape& shape) {
  constexpr double part = 224.0 / 256;
  return centred_region(height, width, ratio_of(shape), part);
}

Region random_region(int height, int width, const models::Shape& shape, std::uint64_t seed) {
  constexpr double least_area = 0.08;
  constexpr double most_ratio = 4.0 / 3;
  constexpr int draws = 10;
  Random random(seed);
  const double proportions = ratio_of(shape);
  for (int i = 0; i < draws; ++i) {
    const double area = (least_area + (1 - least_area) * random.uniform()) * height * width;
    const double ratio = proportions * std::pow(most_ratio, 2 * random.uniform() - 1);
    const double region_width = std::max(1.0, std::sqrt(area * ratio));
    const double region_height = std::max(1.0, std::sqrt(area / ratio));
    if (region_width > width || region_height > height) continue;
    const double left = random.uniform() * (width - region_width);
    const double top = random.uniform() * (height - region_height);
    return {left, top, region_width, region_height};
  }
  const double ratio = std::clamp(static_cast<double>(width) / height, proportions / most_ratio,
                                  proportions * most_ratio);
  return centred_region(height, width, ratio, 1);
}

int eighths_enough(const Region& region, const models::Shape& shape) {
  for (const int eighths : {1, 2, 4}) {
    if (region.width * eighths >= 8 * static_cast<double>(shape.width) &&
        region.height * eighths >= 8 * static_cast<double>(shape.height))
      return eighths;
  }
  return 8;
}

void Resampler::Filter::set(double start, double length, int inputs, int results) {
  taps.clear();
  weights.clear();
  const double scale = length / results;
  const double reach = std::max(1.0, scale);
  for (int i = 0; i < results; ++i) {
    const double centre = start + (i + 0.5) * scale;
    // Input k is centred at k + 1/2; those nearer than the reach count.
    const int first = std::max(0, static_cast<int>(std::floor(centre - reach + 0.5)));
    const int last = std::min(inputs, static_cast<int>(std::ceil(centre + reach - 0.5)) + 1);
    const std::size_t begin = weights.size();
    double sum = 0;
    for (int k = first; k < last; ++k) {
      const double weight = std::max(0.0, 1 - std::abs(k + 0.5 - centre) / reach);
      weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    PACELINE_ASSERT(sum > 0, "a region lies in its image");
    for (std::size_t k = begin; k < weights.size(); ++k)
      weights[k] = static_cast<float>(weights[k] / sum);
    taps.push_back({first, begin, weights.size()});
  }
}

void Resampler::shrink_rows(const RgbImage& image, int first_row, int rows, int width) {
  rows_.resize(to_size(rows) * to_size(width) * 3);
  float* result = rows_.data();
  for (int y = first_row; y < first_row + rows; ++y) {
    const std::uint8_t* row = image.pixels.data() + to_size(y) * to_size(image.width) * 3;
    for (const Taps& taps : across_.taps) {
      float red = 0;
      float green = 0;
      float blue = 0;
      const std::uint8_t* pixel = row + std::ptrdiff_t{3} * taps.first;
      for (std::size_t k = taps.begin; k < taps.end; ++k, pixel += 3) {
        const float weight = across_.weights[k];
        red += weight * static_cast<float>(pixel[0]);
        green += weight * static_cast<float>(pixel[1]);
        blue += weight * static_cast<float>(pixel[2]);
      }
      *result++ = red;
      *result++ = green;
      *result++ = blue;
    }
  }
}

void Resampler::resample(const RgbImage& image, const Region& region, int height, int width,
                         ByteVector& result) {
  across_.set(region.left, region.width, image.width, width);
  down_.set(region.top, region.height, image.height, height);
  const int first_row = down_.taps.front().first;
  const Taps& lowest = down_.taps.back();
  const int rows = lowest.first + static_cast<int>(lowest.end - lowest.begin) - first_row;
  shrink_rows(image, first_row, rows, width);
  const std::size_t stride = to_size(width) * 3;
  row_.resize(stride);
  result.resize(to_size(height) * stride);
  std::uint8_t* out = result.data();
  for (const Taps& taps : down_.taps) {
    std::fill(row_.begin(), row_.end(), 0.5F);  // rounds
    const float* row = rows_.data() + to_size(taps.first - first_row) * stride;
    for (std::size_t k = taps.begin; k < taps.end; ++k, row += stride) {
      const float weight = down_.weights[k];
      for (std::size_t i = 0; i < stride; ++i) row_[i] += weight * row[i];
    }
    for (std::size_t i = 0; i < stride; ++i)
      *out++ = static_cast<std::uint8_t>(std::min(row_[i], 255.0F));
  }
}

}  // namespace paceline::runtime
