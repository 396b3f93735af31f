// TFRecord files: records of bytes, each with checksums (tensorflow/core/lib/io/record_writer.h).
//
// A record is its length (8 bytes, little-endian), the masked CRC32C of these (4 bytes), the data,
// and the masked CRC32C of the data (4 bytes). Nothing precedes the first or follows the last.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace paceline::runtime {

// CRC32C (Castagnoli), reflected, begun and ended with all ones: "123456789" has 0xe3069283.
// At most 2^31 - 1 bytes.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::uint8_t> bytes);

// Rotated and added to, so that the checksum of data that holds checksums is good, too.
[[nodiscard]] constexpr std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

inline constexpr std::size_t record_head = 12;  // length and its checksum
inline constexpr std::size_t record_tail = 4;   // checksum of the data
inline constexpr std::uint64_t most_record_bytes = std::uint64_t{1} << 30;

struct RecordPlace {
  std::uint64_t offset = 0;  // of the head, from the beginning of the file
  std::uint32_t length = 0;  // of the data
};

// A file of `size` bytes, of which any are read to `bytes`. `name` is for messages.
struct RecordFile {
  std::string name;
  std::uint64_t size = 0;
  std::function<void(std::uint64_t offset, std::span<std::uint8_t> bytes)> read;
};

// Every record, by reading only the heads. Throws InputError with file and byte offset if a length
// fails its checksum, is more than 1 GiB, or reaches beyond the end of the file.
[[nodiscard]] std::vector<RecordPlace> record_places(const RecordFile& file);

// Reads a record to `bytes` (which keeps its memory) and returns the data in it. Throws InputError
// with file and byte offset if the data fails its checksum.
[[nodiscard]] std::span<const std::uint8_t> read_record(const RecordFile& file,
                                                        const RecordPlace& place,
                                                        std::vector<std::uint8_t>& bytes);

// "FILE, record at byte 1234": for messages.
[[nodiscard]] std::string name_of(const RecordFile& file, const RecordPlace& place);

}  // namespace paceline::runtime
