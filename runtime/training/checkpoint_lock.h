// The right of one job to write the checkpoints of a path, for as long as the job lives. Two jobs that
// wrote to one path in turn would each leave a checkpoint that the other cannot go on from.
//
// It is a lock (flock) on PATH.lock, which holds a line that says whose it is. The kernel takes the
// lock back when the process ends, however it ends, so that a file that is left behind by SIGKILL
// keeps nobody out. Over NFS Linux makes such locks hold between hosts; file systems that have no
// locks (Lustre without `flock`) have none, and the path is then not protected.
#pragma once

#include <string>

namespace paceline::runtime {

class CheckpointLock {
 public:
  // Takes the lock of the file that the path leads to. Throws InputError that names the other process
  // where one has it, or if PATH.lock is a file of somebody else's; RunError if it cannot be made.
  explicit CheckpointLock(const std::string& path);
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;
  // Gives the lock back and removes PATH.lock.
  ~CheckpointLock();

 private:
  bool open_and_lock();
  [[noreturn]] void refuse() const;

  std::string path_;  // as given, for errors
  std::string lock_;
  int descriptor_ = -1;
};

}  // namespace paceline::runtime
