// Work in a forked child: for libraries whose global state would outlive one use of them.
//
// The child has a copy of the parent's memory, a socket to talk over, and neither the parent's
// standard streams nor any other of its files. It ends by _exit: it runs no handlers and flushes
// no buffers of the parent's. It dies with the thread that started it.
//
// Fork where no other thread may hold a lock that the work needs (malloc's is safe in glibc).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>

namespace paceline::simulator {

// One end of a stream of values between a process and its copy. Closes it when it goes.
class Channel {
 public:
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // False if the other end is gone.
  [[nodiscard]] bool write(const void* data, std::size_t size);
  [[nodiscard]] bool read(void* data, std::size_t size);
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

class ChildProcess {
 public:
  // What runs in the child. What it throws, std::exceptions, becomes the parent's RunError.
  using Body = std::function<void(Channel& parent)>;

  // `work` is what the child is for, as in "cannot <work>: killed by signal 9". Throws RunError.
  ChildProcess(std::string work, const Body& body);
  // Kills the child if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Throw RunError, with the first line that the child wrote to its stderr, if it has ended. Not
  // after join().
  template <class T>
  void send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!channel_.write(&value, sizeof value)) fail(reap());
  }
  template <class T>
  [[nodiscard]] T receive() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (!channel_.read(&value, sizeof value)) fail(reap());
    return value;
  }
  // Waits for its end. Throws RunError if that was not the end of `body`.
  void join();

 private:
  struct Files;
  ChildProcess(std::string work, const Body& body, Files files);

  [[nodiscard]] int reap();  // its status as of waitpid
  [[noreturn]] void fail(int status) const;
  [[nodiscard]] std::string first_line_of_log() const;

  std::string work_;
  Channel channel_;
  Channel log_;  // what the child writes to its stderr
  pid_t pid_ = -1;
};

}  // namespace paceline::simulator
