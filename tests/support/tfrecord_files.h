// TFRecord files of tf.Example for tests, written byte by byte and without our readers' libraries:
// the CRC bit by bit, the protocol buffers by hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::test {

using Bytes = std::vector<std::uint8_t>;

inline void append(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}
inline Bytes bytes_of(std::string_view text) {
  return {text.begin(), text.end()};
}

// CRC32C, from the polynomial 0x1edc6f41 reversed.
inline std::uint32_t slow_crc32c(const Bytes& bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
  }
  return ~crc;
}

inline Bytes little_endian(std::uint64_t value, int bytes) {
  Bytes result;
  for (int i = 0; i < bytes; ++i) result.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  return result;
}
inline Bytes masked_crc(const Bytes& bytes) {
  const std::uint32_t crc = slow_crc32c(bytes);
  return little_endian(((crc >> 15) | (crc << 17)) + 0xa282ead8U, 4);
}

inline Bytes record_of(const Bytes& data) {
  Bytes record = little_endian(data.size(), 8);
  append(record, masked_crc(record));
  append(record, data);
  append(record, masked_crc(data));
  return record;
}

inline Bytes varint(std::uint64_t value) {
  Bytes result;
  for (; value >= 0x80; value >>= 7) result.push_back(static_cast<std::uint8_t>(value | 0x80));
  result.push_back(static_cast<std::uint8_t>(value));
  return result;
}
// A field of wire type 2: its number, its length, its contents.
inline Bytes field(std::uint64_t number, const Bytes& contents) {
  Bytes result = varint(number << 3 | 2);
  append(result, varint(contents.size()));
  append(result, contents);
  return result;
}

// One entry of Features' map: key, and the Feature with a list of one.
inline Bytes bytes_feature(std::string_view key, const Bytes& value) {
  Bytes entry = field(1, bytes_of(key));
  append(entry, field(2, field(1, field(1, value))));
  return field(1, entry);
}
inline Bytes int_feature(std::string_view key, std::int64_t value) {
  Bytes entry = field(1, bytes_of(key));
  append(entry, field(2, field(3, field(1, varint(static_cast<std::uint64_t>(value))))));
  return field(1, entry);
}
inline Bytes example_of(const std::vector<Bytes>& features) {
  Bytes all;
  for (const Bytes& feature : features) append(all, feature);
  return field(1, all);
}

// As ImageNet's script writes it: the label counts from 1.
inline Bytes imagenet_example(const Bytes& jpeg, std::int64_t label) {
  return example_of({bytes_feature("image/encoded", jpeg), int_feature("image/class/label", label),
                     bytes_feature("image/class/synset", bytes_of("n01440764")),
                     bytes_feature("image/format", bytes_of("JPEG")),
                     int_feature("image/height", 40)});
}

}  // namespace paceline::test
