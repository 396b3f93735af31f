// The shape of one sample's tensor: an image (channels, height, width) or a vector (features).
#pragma once

#include <cstdint>
#include <string>

namespace paceline::models {

struct Shape {
  std::int64_t channels = 1;  // or features, for a vector
  std::int64_t height = 1;
  std::int64_t width = 1;
  bool is_image = false;

  [[nodiscard]] std::int64_t elements() const { return channels * height * width; }
  bool operator==(const Shape&) const = default;

  [[nodiscard]] static Shape image(std::int64_t channels, std::int64_t height, std::int64_t width) {
    return {channels, height, width, true};
  }
  [[nodiscard]] static Shape vector(std::int64_t features) { return {features, 1, 1, false}; }
};

// "64x56x56", or "1000".
[[nodiscard]] inline std::string to_text(const Shape& shape) {
  std::string text = std::to_string(shape.channels);
  if (shape.is_image)
    text += "x" + std::to_string(shape.height) + "x" + std::to_string(shape.width);
  return text;
}

}  // namespace paceline::models
