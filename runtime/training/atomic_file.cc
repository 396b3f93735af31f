// Tests: tests/runtime/training/checkpoint_faults_test.cc, tests/cli (end to end).
#include "runtime/training/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::runtime {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_write(const std::string& path) {
  throw RunError("write " + path, std::strerror(errno));
}

std::string target_of(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw RunError("write " + path, "it is no file");
  if (fs::exists(status) && ::access(path.c_str(), W_OK) != 0) fail_to_write(path);
  const std::string target = linked_file(path);
  if (fs::is_symlink(fs::symlink_status(target, error))) {
    errno = ELOOP;
    fail_to_write(path);
  }
  return target;
}

}  // namespace

std::string linked_file(const std::string& path) {
  constexpr int most_links = 40;  // as many as Linux follows
  std::error_code error;
  fs::path file = path;
  for (int links = 0; links < most_links && fs::is_symlink(fs::symlink_status(file, error));
       ++links)
    file = file.parent_path() / fs::read_symlink(file, error);
  return file.string();
}

AtomicFile::AtomicFile(const std::string& path, Writers writers)
    : path_(path), target_(target_of(path)), writers_(writers) {
  if (writers == Writers::many) {
    partial_ = target_ + ".XXXXXX";
    descriptor_ = ::mkstemp(partial_.data());
    if (descriptor_ < 0) fail();
    return;
  }
  partial_ = target_ + ".partial";
  while (!open_and_lock()) ::close(descriptor_);
  if (::ftruncate(descriptor_, 0) != 0) abandon();
}

AtomicFile::~AtomicFile() {
  if (!partial_.empty()) ::unlink(partial_.c_str());
  ::close(descriptor_);
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail();
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(to_size(count));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail();
  if (writers_ == Writers::many) {  // mkstemp lets nobody else read it
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(descriptor_, 0666 & ~mask) != 0) fail();
  }
  if (::rename(partial_.c_str(), target_.c_str()) != 0) fail();
  partial_.clear();
}

void AtomicFile::flush_folder() const {
  const fs::path folder = fs::path(target_).parent_path();
  const int descriptor =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail();
  const bool flushed = ::fsync(descriptor) == 0 || errno == EINVAL;  // some have nothing to flush
  const int cause = errno;
  ::close(descriptor);
  errno = cause;
  if (!flushed) fail();
}

// False where the file was renamed away between opening and locking it.
bool AtomicFile::open_and_lock() {
  descriptor_ = ::open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) fail();
  // Some network file systems have no locks: then there is none.
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw RunError("write " + path_, "another process is writing it");
  }
  struct stat ours {};
  struct stat there {};
  return ::fstat(descriptor_, &ours) == 0 && ::stat(partial_.c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

// Cleans up after a failure in the constructor, which no destructor follows.
void AtomicFile::abandon() {
  const int cause = errno;
  ::unlink(partial_.c_str());
  ::close(descriptor_);
  errno = cause;
  fail();
}

void AtomicFile::fail() const {
  fail_to_write(path_);
}

}  // namespace paceline::runtime
