// IDX files of bytes (Y. LeCun, yann.lecun.com/exdb/mnist): how MNIST and Fashion-MNIST come.
//
// Big-endian: two zero bytes, the type (8: unsigned bytes), the number of dimensions, each
// dimension in 4 bytes, then the elements, the last dimension fastest.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "models/base/to_size.h"
#include "runtime/training/data/gzip.h"

namespace paceline::runtime {

// Images (count x height x width) with one byte a pixel.
struct IdxImages {
  std::int64_t count = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  ByteVector bytes;  // of the file, the header too

  // height x width bytes.
  [[nodiscard]] std::span<const std::uint8_t> image(std::int64_t index) const {
    const auto size = to_size(height * width);
    return std::span(bytes).subspan(header + to_size(index) * size, size);
  }
  [[nodiscard]] std::span<const std::uint8_t> pixels() const {
    return std::span(bytes).subspan(header);
  }

  static constexpr std::size_t header = 16;  // bytes
};

// Both take the bytes of a file, packed by gzip or plain. `file` is its name in messages. At most
// `most` bytes are unpacked. They throw InputError, which says what is wrong and what would be
// right, if the header is another one or there are more or fewer bytes than it says.
inline constexpr std::size_t most_idx_bytes = std::size_t{1} << 32;
[[nodiscard]] IdxImages parse_idx_images(ByteVector bytes, const std::string& file,
                                         std::size_t most = most_idx_bytes);
[[nodiscard]] ByteVector parse_idx_labels(ByteVector bytes, const std::string& file,
                                          std::size_t most = most_idx_bytes);

}  // namespace paceline::runtime
