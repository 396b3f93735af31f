// Work in a forked child process, for libraries whose global state would outlive one use of them.
//
// The child has a copy of the parent's memory and a socket to the parent, but neither the parent's
// standard streams nor any other of its files. It ends by _exit: it runs no handlers and flushes
// none of the parent's buffers. It dies with the thread that started it.
//
// Fork only where no other thread can hold a lock that the work needs (glibc makes malloc's safe).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>

namespace paceline::simulator {

// One end of a stream of bytes between a process and its copy. The destructor closes it.
class ProcessPipe {
 public:
  explicit ProcessPipe(int descriptor) : descriptor_(descriptor) {}
  ~ProcessPipe();
  ProcessPipe(const ProcessPipe&) = delete;
  ProcessPipe& operator=(const ProcessPipe&) = delete;

  // False if the other end is gone.
  [[nodiscard]] bool write(const void* data, std::size_t size);
  [[nodiscard]] bool read(void* data, std::size_t size);
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

class ChildProcess {
 public:
  // The function that the child runs. A std::exception from it becomes a RunError in the parent.
  using Body = std::function<void(ProcessPipe& parent)>;

  // `work` names the work for errors, as in "cannot <work>: killed by signal 9". Throws RunError.
  ChildProcess(std::string work, const Body& body);
  // Kills the child if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Both throw RunError, with the first line that the child wrote to its stderr, if the child has
  // ended. Neither may be called after join().
  template <class T>
  void send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!pipe_.write(&value, sizeof value)) fail(reap());
  }
  template <class T>
  [[nodiscard]] T receive() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (!pipe_.read(&value, sizeof value)) fail(reap());
    return value;
  }
  // Waits for the end of the child. Throws RunError if `body` had not returned then.
  void join();

 private:
  struct Files;
  ChildProcess(std::string work, const Body& body, Files files);

  [[nodiscard]] int reap();  // returns the status of waitpid
  [[noreturn]] void fail(int status) const;
  [[nodiscard]] std::string first_line_of_log() const;

  std::string work_;
  ProcessPipe pipe_;
  ProcessPipe log_;  // what the child writes to its stderr
  pid_t pid_ = -1;
};

}  // namespace paceline::simulator
