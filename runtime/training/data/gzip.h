// Bytes of files, and gzip (RFC 1952) in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace paceline::runtime {

using ByteVector = std::vector<std::uint8_t>;

// The whole file. Throws InputError if it cannot be read or has more than `most` bytes.
[[nodiscard]] ByteVector read_file(const std::string& path, std::size_t most);

[[nodiscard]] bool is_gzip(std::span<const std::uint8_t> bytes);

// Inflates all members. `file` is for messages. Throws InputError if the stream is damaged, ends
// early, is followed by other bytes, or holds more than `most`.
[[nodiscard]] ByteVector inflated(std::span<const std::uint8_t> bytes, const std::string& file,
                                  std::size_t most);

}  // namespace paceline::runtime
