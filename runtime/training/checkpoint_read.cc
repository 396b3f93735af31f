// Tests: tests/runtime/training/checkpoint_test.cc; tests/fuzz/checkpoint.cc.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/training/checkpoint.h"
#include "runtime/training/checkpoint_format.h"

namespace paceline::runtime {
namespace {

constexpr const char* another = "give another checkpoint";

// Bytes from the first to the last.
class Source {
 public:
  Source(std::string name, std::uint64_t size) : name_(std::move(name)), size_(size) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Fills `target`; there are as many bytes left.
  virtual void read(std::span<std::byte> target) = 0;

  [[nodiscard]] InputError error(const std::string& problem, const std::string& remedy) const {
    return {{name_}, problem, remedy};
  }

 private:
  std::string name_;
  std::uint64_t size_;
};

class BytesSource : public Source {
 public:
  BytesSource(std::span<const std::byte> bytes, const std::string& name)
      : Source(name, bytes.size()), left_(bytes) {}
  void read(std::span<std::byte> target) override {
    std::copy_n(left_.begin(), target.size(), target.begin());
    left_ = left_.subspan(target.size());
  }

 private:
  std::span<const std::byte> left_;
};

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (number_ < 0)
      throw InputError({path}, fmt::format("it cannot be opened: {}", std::strerror(errno)),
                       "give the path of a checkpoint");
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(number_); }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

std::uint64_t size_of(const Descriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode))
    throw InputError({path}, "this is no file", "give the path of a checkpoint");
  return static_cast<std::uint64_t>(status.st_size);
}

class FileSource : public Source {
 public:
  FileSource(const Descriptor& file, const std::string& path)
      : Source(path, size_of(file, path)), file_(file) {}
  void read(std::span<std::byte> target) override {
    while (!target.empty()) {
      const ssize_t count = ::read(file_.number(), target.data(), target.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0)
        throw error(std::string("it cannot be read: ") + std::strerror(errno), another);
      if (count == 0) throw error("it became shorter while it was read", "read it again");
      target = target.subspan(to_size(count));
    }
  }

 private:
  const Descriptor& file_;
};

InputError cut_short(const Source& source, const std::string& what, std::uint64_t end) {
  return source.error(fmt::format("the checkpoint is cut short at byte {}: {} ends at byte {}",
                                  source.size(), what, end),
                      another);
}

// The first bytes, of a version and a length that can be.
CheckpointStart read_start(Source& source) {
  CheckpointStart start{};
  const auto bytes = std::as_writable_bytes(std::span(&start, 1));
  source.read(bytes.first(to_size(std::min<std::uint64_t>(32, source.size()))));
  const auto begun = to_size(std::min<std::uint64_t>(8, source.size()));
  if (begun == 0 ||
      std::string_view(start.magic.data(), begun) != checkpoint_magic.substr(0, begun))
    throw source.error("this is no checkpoint", "give a file that `paceline train` wrote");
  if (source.size() < 32) throw cut_short(source, "its first part", 32);
  if (start.version != checkpoint_version) {
    throw source.error(fmt::format("this checkpoint is of version {}", start.version),
                       fmt::format("give one of version {}", checkpoint_version));
  }
  if (start.header_bytes > longest_checkpoint_header)
    throw source.error(fmt::format("the header is damaged: {} bytes long", start.header_bytes),
                       another);
  return start;
}

CheckpointHeader read_header(Source& source, const CheckpointStart& start) {
  if (source.size() - 32 < start.header_bytes)
    throw cut_short(source, "its header", 32 + std::uint64_t{start.header_bytes});
  std::string text(start.header_bytes, ' ');
  source.read(std::as_writable_bytes(std::span(text)));
  if (header_sum(start, text) != start.sum)
    throw source.error("the header is damaged: its checksum differs", another);
  return parse_header(text, source.name());
}

// Checks that the arrays fill the file to its end, before memory is reserved for them.
void check_size(const Source& source, const CheckpointHeader& header, std::uint64_t begin) {
  std::uint64_t end = begin;
  for (const ArrayEntry& array : header.arrays) {
    const std::uint64_t left = source.size() - end;
    if (array.elements > left / sizeof(float)) {
      throw source.error(
          fmt::format("the checkpoint is cut short at byte {}: array {} begins at byte {} and has "
                      "{} elements",
                      source.size(), in_quotes(array.name), end, array.elements),
          another);
    }
    end += array.elements * sizeof(float);
  }
  if (end != source.size())
    throw source.error(fmt::format("{} bytes follow the last array", source.size() - end), another);
}

std::vector<float> read_array(Source& source, const ArrayEntry& entry) {
  std::vector<float> values(to_size(entry.elements));
  Checksummer summer;
  for (auto left = std::as_writable_bytes(std::span(values)); !left.empty();) {
    const auto piece = left.first(std::min(left.size(), checkpoint_piece));
    source.read(piece);
    summer.add(piece);
    left = left.subspan(piece.size());
  }
  if (to_hex(summer.sum()) != entry.sum)
    throw source.error(
        fmt::format("array {} is damaged: its checksum differs", in_quotes(entry.name)), another);
  return values;
}

Checkpoint parse(Source& source) {
  const CheckpointStart start = read_start(source);
  CheckpointHeader header = read_header(source, start);
  check_size(source, header, sizeof start + std::uint64_t{start.header_bytes});
  Checkpoint checkpoint = std::move(header.numbers);
  for (const ArrayEntry& entry : header.arrays)
    checkpoint.arrays.push_back({entry.name, read_array(source, entry)});
  return checkpoint;
}

}  // namespace

const std::vector<float>& Checkpoint::array(const std::string& name, std::size_t elements) const {
  for (const CheckpointArray& array : arrays) {
    if (array.name != name) continue;
    if (array.values.size() == elements) return array.values;
    throw InputError(fmt::format("array {} of the checkpoint has {} elements, and {} are needed",
                                 in_quotes(name), array.values.size(), elements),
                     "give a checkpoint of this network");
  }
  throw InputError(fmt::format("the checkpoint has no array {}", in_quotes(name)),
                   "give a checkpoint of this job");
}

Checkpoint read_checkpoint(const std::string& path) {
  const Descriptor file(path);
  FileSource source(file, path);
  return parse(source);
}

Checkpoint parse_checkpoint(std::span<const std::byte> bytes, const std::string& name) {
  BytesSource source(bytes, name);
  return parse(source);
}

}  // namespace paceline::runtime
