// Tests: tests/simulator/child_process_test.cc.
#include "simulator/engine/child_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

// A parent without standard streams must not get a socket in their place.
int above_standard_streams(int descriptor) {
  if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
  const int above = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(descriptor);
  return above;
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(to_size(written));
  }
}

void keep_only(int socket, int log) {
  dup2(log, STDERR_FILENO);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  const auto kept = static_cast<unsigned>(socket);
  constexpr unsigned first = STDERR_FILENO + 1;
  if (kept > first) close_range(first, kept - 1, 0);
  close_range(kept + 1, ~0U, 0);
}

[[noreturn]] void run_child(const ChildProcess::Body& body, int socket, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);
  keep_only(socket, log);
  int status = EXIT_SUCCESS;
  {
    ProcessPipe channel(socket);
    try {
      body(channel);
    } catch (const std::exception& error) {
      write_all(STDERR_FILENO, error.what());
      status = EXIT_FAILURE;
    }
  }
  _exit(status);
}

}  // namespace

ProcessPipe::~ProcessPipe() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool ProcessPipe::write(const void* data, std::size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(descriptor_, next, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    next += sent;
    size -= to_size(sent);
  }
  return true;
}

bool ProcessPipe::read(void* data, std::size_t size) {
  char* next = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t received = ::recv(descriptor_, next, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    next += received;
    size -= to_size(received);
  }
  return true;
}

struct ChildProcess::Files {
  std::array<int, 2> sockets = {-1, -1};
  int log = -1;

  static Files open(const std::string& work) {
    Files files;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, files.sockets.data()) != 0)
      throw RunError(work, std::strerror(errno));
    for (int& socket : files.sockets) socket = above_standard_streams(socket);
    files.log = memfd_create("log of a child", MFD_CLOEXEC);
    return files;
  }
};

ChildProcess::ChildProcess(std::string work, const Body& body)
    : ChildProcess(work, body, Files::open(work)) {}

ChildProcess::ChildProcess(std::string work, const Body& body, Files files)
    : work_(std::move(work)), pipe_(files.sockets[0]), log_(files.log) {
  const ProcessPipe childs_end(files.sockets[1]);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw RunError(work_, std::strerror(errno));
  if (pid_ == 0) run_child(body, files.sockets[1], files.log, parent);
}

ChildProcess::~ChildProcess() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  static_cast<void>(reap());
}

int ChildProcess::reap() {
  const pid_t pid = std::exchange(pid_, -1);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

void ChildProcess::join() {
  const int status = reap();
  if (status != 0) fail(status);
}

void ChildProcess::fail(int status) const {
  const std::string line = first_line_of_log();
  if (WIFSIGNALED(status)) {
    throw RunError(work_,
                   fmt::format("its process was killed by signal {} ({}){}{}", WTERMSIG(status),
                               strsignal(WTERMSIG(status)), line.empty() ? "" : ": ", line));
  }
  if (!line.empty()) throw RunError(work_, line);
  throw RunError(work_,
                 fmt::format("its process ended early, with status {}", WEXITSTATUS(status)));
}

std::string ChildProcess::first_line_of_log() const {
  std::array<char, 1000> text{};
  const ssize_t length = pread(log_.descriptor(), text.data(), text.size(), 0);
  if (length <= 0) return {};
  std::string_view line(text.data(), to_size(length));
  line.remove_prefix(std::min(line.find_first_not_of('\n'), line.size()));
  std::string printable(line.substr(0, line.find('\n')));
  std::replace_if(
      printable.begin(), printable.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return printable;
}

}  // namespace paceline::simulator
