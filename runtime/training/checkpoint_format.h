// The part of a checkpoint before the arrays. docs/formats.md has the layout. Files of it are on
// disk: a change needs another version.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/training/checkpoint.h"
#include "runtime/training/checksum.h"

namespace paceline::runtime {

static_assert(std::endian::native == std::endian::little, "numbers on disk are little-endian");

inline constexpr std::string_view checkpoint_magic = "PACECKPT";
inline constexpr std::uint32_t checkpoint_version = 1;
inline constexpr std::uint32_t longest_checkpoint_header = 4U << 20;
// Read, checked and written at once: stays in the cache.
inline constexpr std::size_t checkpoint_piece = 1U << 20;

// The first 32 bytes.
struct CheckpointStart {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  Checksum sum;  // of the 16 bytes above and of the header
};
static_assert(sizeof(CheckpointStart) == 32);

// An array as the header names it.
struct ArrayEntry {
  std::string name;
  std::uint64_t elements = 0;
  std::string sum;  // 32 hexadecimal digits
};

struct CheckpointHeader {
  Checkpoint numbers;  // without arrays
  std::vector<ArrayEntry> arrays;
};

[[nodiscard]] Checksum header_sum(const CheckpointStart& start, std::string_view header);

// One line of JSON. Throws RunError if a text is no UTF-8.
[[nodiscard]] std::string header_text(const Checkpoint& numbers,
                                      const std::vector<ArrayEntry>& arrays);
// Throws InputError if the text is no header of this version.
[[nodiscard]] CheckpointHeader parse_header(std::string_view text, const std::string& name);

}  // namespace paceline::runtime
