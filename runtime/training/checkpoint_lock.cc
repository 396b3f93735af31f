// Tests: tests/runtime/training/checkpoint_lock_test.cc.
#include "runtime/training/checkpoint_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/training/atomic_file.h"

namespace paceline::runtime {
namespace {

constexpr std::string_view start_of_owner = "paceline train, process ";

std::string host_name() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

// The first bytes of the file, up to a line feed.
std::string first_line(int descriptor) {
  std::array<char, 512> room = {};
  const ssize_t got = ::pread(descriptor, room.data(), room.size(), 0);
  const std::string text(room.data(), got > 0 ? to_size(got) : 0);
  return text.substr(0, text.find('\n'));
}

// Whether a text is a line of ours, or the beginning of one whose writer was killed.
bool is_owner(std::string_view line) {
  const std::size_t common = std::min(line.size(), start_of_owner.size());
  return line.substr(0, common) == start_of_owner.substr(0, common);
}

}  // namespace

CheckpointLock::CheckpointLock(const std::string& path)
    : path_(path), lock_(linked_file(path) + ".lock") {
  while (!open_and_lock()) ::close(descriptor_);
  if (!is_owner(first_line(descriptor_))) {
    ::close(descriptor_);
    throw InputError({path_}, "beside it is " + lock_ + ", which is no lock of paceline",
                     "give another path, or move that file away");
  }
  // Where the disk is full, the lock holds without saying whose it is.
  const std::string owner = fmt::format("{}{} on {}\n", start_of_owner, ::getpid(), host_name());
  if (::ftruncate(descriptor_, 0) == 0) (void)!::pwrite(descriptor_, owner.data(), owner.size(), 0);
}

CheckpointLock::~CheckpointLock() {
  ::unlink(lock_.c_str());
  ::close(descriptor_);
}

// False where the file was removed by its last owner between opening and locking it.
bool CheckpointLock::open_and_lock() {
  descriptor_ = ::open(lock_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (descriptor_ < 0) throw RunError("write " + lock_, std::strerror(errno));
  // Some network file systems have no locks: then there is none.
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) refuse();
  struct stat ours {};
  struct stat there {};
  return ::fstat(descriptor_, &ours) == 0 && ::stat(lock_.c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

void CheckpointLock::refuse() const {
  const std::string line = first_line(descriptor_);
  ::close(descriptor_);
  const std::string owner =
      line.starts_with(start_of_owner) ? line.substr(line.find("process")) : "another process";
  throw InputError({path_}, owner + " writes its checkpoints there",
                   "give another path, or wait until that job has ended");
}

}  // namespace paceline::runtime
