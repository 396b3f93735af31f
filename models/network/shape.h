// The shape of one sample's tensor: an image (channels, height, width), a vector (features) or a
// sequence (elements, features). Tokens are a sequence of one feature: their numbers.
#pragma once

#include <cstdint>
#include <string>

namespace paceline::models {

struct Shape {
  std::int64_t channels = 1;  // or features, for a vector and for each element of a sequence
  std::int64_t height = 1;    // or elements, for a sequence
  std::int64_t width = 1;
  bool is_image = false;
  bool is_sequence = false;

  [[nodiscard]] std::int64_t elements() const { return channels * height * width; }
  bool operator==(const Shape&) const = default;

  [[nodiscard]] static Shape image(std::int64_t channels, std::int64_t height, std::int64_t width) {
    return {channels, height, width, true, false};
  }
  [[nodiscard]] static Shape vector(std::int64_t features) {
    return {features, 1, 1, false, false};
  }
  [[nodiscard]] static Shape sequence(std::int64_t elements, std::int64_t features = 1) {
    return {features, elements, 1, false, true};
  }
};

// "64x56x56", "1000", or "512x768" for 512 elements of 768 features.
[[nodiscard]] inline std::string to_text(const Shape& shape) {
  if (shape.is_sequence) return std::to_string(shape.height) + "x" + std::to_string(shape.channels);
  std::string text = std::to_string(shape.channels);
  if (shape.is_image)
    text += "x" + std::to_string(shape.height) + "x" + std::to_string(shape.width);
  return text;
}

// "an image 64x56x56", "a vector of 1000", or "a sequence 512x768".
[[nodiscard]] inline std::string described(const Shape& shape) {
  if (shape.is_image) return "an image " + to_text(shape);
  return (shape.is_sequence ? "a sequence " : "a vector of ") + to_text(shape);
}

}  // namespace paceline::models
