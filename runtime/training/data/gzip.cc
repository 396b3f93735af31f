#include "runtime/training/data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::runtime {
namespace {

constexpr std::size_t trailer = 8;  // CRC and length of a member, each 4 bytes, little-endian

// zlib's state of inflating gzip.
class Inflater {
 public:
  Inflater() {
    constexpr int gzip_only = 16;
    PACELINE_ASSERT(inflateInit2(&stream_, MAX_WBITS + gzip_only) == Z_OK, "zlib starts");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

// The length that the trailer states (modulo 2^32), unless deflate cannot reach it: its least is
// one bit pair for 258 bytes, 1032:1.
std::size_t expected_size(std::span<const std::uint8_t> bytes, std::size_t most) {
  if (bytes.size() < trailer) return 0;
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size |= std::size_t{bytes[bytes.size() - 4 + i]} << (8 * i);
  constexpr std::size_t highest_ratio = 1032;
  return std::min({size, most, bytes.size() * highest_ratio});
}

InputError damaged(const std::string& file, const std::string& problem) {
  return InputError(InputPlace{.file = file}, problem, "fetch the file again");
}

// As many bytes as can be handed to zlib at once, out of `bytes`.
uInt portion(std::size_t bytes) {
  constexpr std::size_t most = std::size_t{1} << 30;
  return static_cast<uInt>(std::min(bytes, most));
}

}  // namespace

void read_file(const std::string& path, std::size_t most, ByteVector& bytes) {
  const auto refuse = [&path](const std::string& problem, const std::string& remedy) {
    return InputError(InputPlace{.file = path}, problem, remedy);
  };
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw refuse("cannot read: " + error.message(), "");
  if (size > most)
    throw refuse(std::to_string(size) + " bytes",
                 "at most " + std::to_string(most) + " are read at once");
  bytes.resize(to_size(size));
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!in || to_size(in.gcount()) != bytes.size())
    throw refuse("cannot read all " + std::to_string(size) + " bytes", "check its permissions");
}

bool is_gzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

ByteVector inflated(std::span<const std::uint8_t> bytes, const std::string& file,
                    std::size_t most) {
  Inflater inflater;
  z_stream& stream = inflater.stream();
  ByteVector result(std::max(expected_size(bytes, most), trailer));
  std::size_t used = 0;
  std::size_t size = 0;
  while (true) {
    if (size == result.size()) {
      if (size >= most)
        throw InputError(InputPlace{.file = file},
                         "inflates to more than " + std::to_string(most) + " bytes",
                         "give a file that holds less");
      result.resize(std::min(most, 2 * size));
    }
    stream.next_in = const_cast<Bytef*>(bytes.data() + used);  // zlib reads only
    stream.avail_in = portion(bytes.size() - used);
    stream.next_out = result.data() + size;
    stream.avail_out = portion(result.size() - size);
    const int status = inflate(&stream, Z_NO_FLUSH);
    used = to_size(stream.next_in - bytes.data());
    size = to_size(stream.next_out - result.data());
    if (status == Z_STREAM_END) {
      if (used == bytes.size()) break;
      if (!is_gzip(bytes.subspan(used)))
        throw damaged(file, std::to_string(bytes.size() - used) +
                                " bytes follow the end of the gzip stream, at byte " +
                                std::to_string(used));
      inflateReset(&stream);
    } else if (status == Z_BUF_ERROR ||
               (status == Z_OK && used == bytes.size() && stream.avail_out > 0)) {
      if (stream.avail_out > 0)
        throw damaged(file, "the gzip stream ends early, at byte " + std::to_string(used));
    } else if (status != Z_OK) {
      throw damaged(file, "the gzip stream is damaged near byte " + std::to_string(used) + " (" +
                              (stream.msg == nullptr ? "no gzip" : stream.msg) + ")");
    }
  }
  result.resize(size);
  return result;
}

}  // namespace paceline::runtime
