// Tests: tests/runtime/training/checkpoint_test.cc,
// tests/runtime/training/checkpoint_faults_test.cc.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "models/base/error.h"
#include "runtime/training/checkpoint.h"
#include "runtime/training/checkpoint_format.h"

namespace paceline::runtime {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path) {
  throw RunError("write " + path, std::strerror(errno));
}

// The temporary file: locked, empty at first, and removed unless it becomes the target.
class PartialFile {
 public:
  explicit PartialFile(std::string target)
      : target_(std::move(target)), path_(target_ + ".partial") {
    while (!open_and_lock()) ::close(descriptor_);
    if (::ftruncate(descriptor_, 0) != 0) abandon();
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
    ::close(descriptor_);
  }

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count =
          ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(target_);
      offset += static_cast<std::uint64_t>(count);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  void become_target() {
    if (::fsync(descriptor_) != 0 || ::rename(path_.c_str(), target_.c_str()) != 0) fail(target_);
    path_.clear();
  }

 private:
  // False where the file was renamed away between opening and locking it.
  bool open_and_lock() {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0) fail(target_);
    // Some network file systems have no locks: then there is none.
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor_);
      throw RunError("write " + target_, "another process is writing it");
    }
    struct stat ours {};
    struct stat there {};
    return ::fstat(descriptor_, &ours) == 0 && ::stat(path_.c_str(), &there) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
  }
  // In the constructor, where no destructor follows.
  [[noreturn]] void abandon() {
    const int cause = errno;
    ::unlink(path_.c_str());
    ::close(descriptor_);
    errno = cause;
    fail(target_);
  }

  std::string target_;
  std::string path_;
  int descriptor_ = -1;
};

// A rename is on disk when its folder is.
void flush_folder(const std::string& target) {
  const fs::path folder = fs::path(target).parent_path();
  const int descriptor =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(target);
  const bool flushed = ::fsync(descriptor) == 0 || errno == EINVAL;  // some have nothing to flush
  const int cause = errno;
  ::close(descriptor);
  errno = cause;
  if (!flushed) fail(target);
}

// A link stays a link: what it points to is replaced.
std::string target_of(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw RunError("write " + path, "it is no file");
  if (fs::exists(status) && ::access(path.c_str(), W_OK) != 0) fail(path);
  return fs::is_symlink(fs::symlink_status(path, error))
             ? fs::weakly_canonical(path, error).string()
             : path;
}

Checksum write_array(const PartialFile& file, std::uint64_t offset,
                     std::span<const std::byte> left) {
  Checksummer summer;
  while (!left.empty()) {
    const auto piece = left.first(std::min(left.size(), checkpoint_piece));
    summer.add(piece);
    file.write_at(offset, piece);
    offset += piece.size();
    left = left.subspan(piece.size());
  }
  return summer.sum();
}

std::vector<ArrayEntry> entries_of(const Checkpoint& checkpoint) {
  std::vector<ArrayEntry> entries;
  for (const CheckpointArray& array : checkpoint.arrays)
    entries.push_back({array.name, array.values.size(), to_hex(Checksum{})});
  return entries;
}

void write_all(const PartialFile& file, const Checkpoint& checkpoint) {
  // The arrays come first, so that their checksums are taken in the same pass; the header is as
  // long with them as without.
  std::vector<ArrayEntry> entries = entries_of(checkpoint);
  const std::size_t header_bytes = header_text(checkpoint, entries).size();
  if (header_bytes > longest_checkpoint_header)
    throw RunError("write a checkpoint", "its header is longer than 4 MiB");
  std::uint64_t offset = sizeof(CheckpointStart) + header_bytes;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto bytes = std::as_bytes(std::span(checkpoint.arrays[i].values));
    entries[i].sum = to_hex(write_array(file, offset, bytes));
    offset += bytes.size();
  }
  const std::string header = header_text(checkpoint, entries);
  PACELINE_ASSERT(header.size() == header_bytes, "checksums are of one length");
  CheckpointStart start{.magic = {},
                        .version = checkpoint_version,
                        .header_bytes = static_cast<std::uint32_t>(header_bytes),
                        .sum = {}};
  std::copy(checkpoint_magic.begin(), checkpoint_magic.end(), start.magic.begin());
  start.sum = header_sum(start, header);
  file.write_at(0, std::as_bytes(std::span(&start, 1)));
  file.write_at(sizeof start, std::as_bytes(std::span(header)));
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  const std::string target = target_of(path);
  {
    PartialFile file(target);
    write_all(file, checkpoint);
    file.become_target();
  }
  flush_folder(target);
}

}  // namespace paceline::runtime
