// A file that takes its path whole, or leaves there what was: written beside it, then fsync and
// rename. Of checkpoints, and of what the command writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace paceline::runtime {

enum class Writers {
  many,  // each beside the path by a name of its own; who commits last is the one that stays
  one,   // to PATH.partial, locked; what a writer that was killed has left there is taken over
};

// The file that a path leads to, there or not: what the last of its symbolic links names. Where
// they lead in a circle, one of them.
[[nodiscard]] std::string linked_file(const std::string& path);

class AtomicFile {
 public:
  // A link stays a link: what it points to is replaced. Throws RunError if the path is there and no
  // regular file, cannot be written, or, for one writer, is being written by another.
  AtomicFile(const std::string& path, Writers writers);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  // Without commit() nothing is left.
  ~AtomicFile();

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) const;
  // When it returns, the file is on disk, and has the path. Whether the path is on disk is for the
  // folder's fsync to say: flush_folder().
  void commit();
  void flush_folder() const;

 private:
  bool open_and_lock();
  [[noreturn]] void abandon();
  [[noreturn]] void fail() const;

  std::string path_;     // as given, for errors
  std::string target_;   // what it leads to
  std::string partial_;  // empty once it is the target
  Writers writers_;
  int descriptor_ = -1;
};

}  // namespace paceline::runtime
