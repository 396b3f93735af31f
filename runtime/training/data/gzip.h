// Bytes of files, and gzip (RFC 1952) in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace paceline::runtime {

using ByteVector = std::vector<std::uint8_t>;

// The whole file, in the memory of `bytes` if it fits. Throws InputError if it cannot be read or
// has more than `most` bytes.
void read_file(const std::string& path, std::size_t most, ByteVector& bytes);
[[nodiscard]] inline ByteVector read_file(const std::string& path, std::size_t most) {
  ByteVector bytes;
  read_file(path, most, bytes);
  return bytes;
}

[[nodiscard]] bool is_gzip(std::span<const std::uint8_t> bytes);

// Inflates all members. `file` is for messages. Throws InputError if the stream is damaged, ends
// early, is followed by other bytes, or holds more than `most`.
[[nodiscard]] ByteVector inflated(std::span<const std::uint8_t> bytes, const std::string& file,
                                  std::size_t most);

}  // namespace paceline::runtime
