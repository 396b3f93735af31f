// A file that replaces its path as a whole, or leaves what was there. It is written beside the
// path, flushed by fsync, and renamed. Checkpoints and the command's outputs are written so.
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
  // regular file, a link that leads in a circle, cannot be written, or, for one writer, is being written by another.
  AtomicFile(const std::string& path, Writers writers);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  // Removes the file unless commit() was called.
  ~AtomicFile();

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) const;
  // When it returns, the file's content is on disk, and the path leads to it. The path itself is on
  // disk after flush_folder().
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
