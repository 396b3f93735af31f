#include "runtime/training/data/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::runtime {
namespace {

constexpr std::int64_t highest_side = 1 << 16;

std::uint32_t big_endian(std::span<const std::uint8_t> bytes, std::size_t place) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | bytes[place + i];
  return value;
}

// The dimensions of the header, after which there is exactly one byte for each element.
std::vector<std::int64_t> checked_dimensions(std::span<const std::uint8_t> bytes,
                                             std::size_t dimensions, const char* what,
                                             const std::string& file) {
  const auto refuse = [&file](const std::string& problem, const std::string& remedy) {
    return InputError(InputPlace{.file = file}, problem, remedy);
  };
  constexpr std::uint32_t unsigned_bytes = 0x800;
  const std::uint32_t magic = unsigned_bytes + static_cast<std::uint32_t>(dimensions);
  const std::size_t header = 4 * (1 + dimensions);
  if (bytes.size() < header)
    throw refuse(fmt::format("ends after {} bytes", bytes.size()),
                 fmt::format("an IDX file of {} has a header of {} bytes", what, header));
  if (big_endian(bytes, 0) != magic)
    throw refuse(fmt::format("starts with 0x{:08x}", big_endian(bytes, 0)),
                 fmt::format("an IDX file of {} starts with 0x{:08x}", what, magic));
  std::vector<std::int64_t> sizes;
  std::size_t elements = 1;
  for (std::size_t i = 1; i <= dimensions; ++i) {
    sizes.push_back(big_endian(bytes, 4 * i));
    const std::int64_t most = i == 1 ? std::int64_t{0xffffffff} : highest_side;
    if (sizes.back() < 1 || sizes.back() > most)
      throw refuse(fmt::format("dimension {} is {}", i, sizes.back()),
                   fmt::format("it must be 1 to {}", most));
    elements *= to_size(sizes.back());  // at most 2^64 - 2^32
  }
  if (bytes.size() - header != elements)
    throw refuse(fmt::format("holds {} bytes of {}", bytes.size() - header, what),
                 fmt::format("its header says {} = {}", fmt::join(sizes, " x "), elements));
  return sizes;
}

ByteVector plain(ByteVector bytes, const std::string& file, std::size_t most) {
  return is_gzip(bytes) ? inflated(bytes, file, most) : std::move(bytes);
}

}  // namespace

IdxImages parse_idx_images(ByteVector bytes, const std::string& file, std::size_t most) {
  bytes = plain(std::move(bytes), file, most);
  const auto sizes = checked_dimensions(bytes, 3, "images", file);
  return {.count = sizes[0], .height = sizes[1], .width = sizes[2], .bytes = std::move(bytes)};
}

ByteVector parse_idx_labels(ByteVector bytes, const std::string& file, std::size_t most) {
  bytes = plain(std::move(bytes), file, most);
  constexpr std::size_t header = 8;
  static_cast<void>(checked_dimensions(bytes, 1, "labels", file));
  bytes.erase(bytes.begin(), bytes.begin() + header);
  return bytes;
}

}  // namespace paceline::runtime
