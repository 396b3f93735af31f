#include "runtime/training/data/tfrecord.h"

#include <fmt/core.h>
#include <isa-l/crc.h>

#include <array>
#include <limits>

#include "models/base/error.h"

namespace paceline::runtime {
namespace {

template <class Integer>
Integer little_endian(const std::uint8_t* bytes) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i) value |= Integer{bytes[i]} << (8 * i);
  return value;
}

InputError damaged(const RecordFile& file, std::uint64_t offset, const std::string& problem,
                   const char* remedy = "fetch the file again") {
  return InputError(InputPlace{.file = name_of(file, {offset, 0})}, problem, remedy);
}

// The length of the data after a head.
std::uint32_t checked_length(const RecordFile& file, std::uint64_t offset) {
  const std::uint64_t left = file.size - offset;
  if (left < record_head + record_tail)
    throw damaged(file, offset, fmt::format("the file ends after {} bytes of it", left));
  std::array<std::uint8_t, record_head> head{};
  file.read(offset, head);
  if (masked(crc32c(std::span(head).first(8))) != little_endian<std::uint32_t>(&head[8]))
    throw damaged(file, offset, "its length fails its checksum",
                  "fetch the file again, and unpack it if it is compressed");
  const auto length = little_endian<std::uint64_t>(head.data());
  if (length > most_record_bytes)
    throw damaged(file, offset, fmt::format("its length is {} bytes", length),
                  "a record has at most 1 GiB");
  if (length > left - record_head - record_tail)
    throw damaged(file, offset,
                  fmt::format("the file ends after {} of its {} bytes", left,
                              length + record_head + record_tail));
  return static_cast<std::uint32_t>(length);
}

}  // namespace

std::uint32_t crc32c(std::span<const std::uint8_t> bytes) {
  PACELINE_ASSERT(bytes.size() <= std::size_t{std::numeric_limits<int>::max()},
                  "checksums are of at most 2 GiB");
  // ISA-L neither inverts at the end nor promises not to write.
  return ~crc32_iscsi(const_cast<std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()),
                      0xffffffffU);
}

std::string name_of(const RecordFile& file, const RecordPlace& place) {
  return fmt::format("{}, record at byte {}", file.name, place.offset);
}

std::vector<RecordPlace> record_places(const RecordFile& file) {
  std::vector<RecordPlace> places;
  for (std::uint64_t offset = 0; offset < file.size;) {
    const std::uint32_t length = checked_length(file, offset);
    places.push_back({offset, length});
    offset += record_head + length + record_tail;
  }
  return places;
}

std::span<const std::uint8_t> read_record(const RecordFile& file, const RecordPlace& place,
                                          std::vector<std::uint8_t>& bytes) {
  bytes.resize(std::size_t{place.length} + record_tail);
  file.read(place.offset + record_head, bytes);
  const std::span<const std::uint8_t> data = std::span(bytes).first(place.length);
  if (masked(crc32c(data)) != little_endian<std::uint32_t>(bytes.data() + place.length))
    throw damaged(file, place.offset, "its data fails its checksum");
  return data;
}

}  // namespace paceline::runtime
