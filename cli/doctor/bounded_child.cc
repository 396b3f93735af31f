// Tests: tests/cli/doctor_test.py.
#include "cli/doctor/bounded_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>

#include "models/base/to_size.h"

namespace paceline::doctor {
namespace {

constexpr std::size_t longest_answer = 64 * 1024;
constexpr char answered = '=';
constexpr char failed = '!';

void write_all(int descriptor, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(descriptor, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    at += to_size(written);
  }
}

[[noreturn]] void run_child(const std::function<std::string()>& question, int pipe, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, stream);
  std::string text;
  try {
    text = answered + question();
  } catch (const std::exception& error) {
    text = failed + std::string(error.what());
  }
  write_all(pipe, text.substr(0, longest_answer));
  ::_exit(0);
}

std::string death_of(int status) {
  if (WIFSIGNALED(status)) return std::string("it ended by ") + ::strsignal(WTERMSIG(status));
  return "it ended without an answer";
}

}  // namespace

BoundedChild::BoundedChild(const std::function<std::string()>& question) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) run_child(question, ends[1], parent);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return;
  }
  ::setpgid(child, child);  // the child does so, too: whoever comes first
  process_ = child;
  pipe_ = ends[0];
}

BoundedChild::~BoundedChild() {
  if (pipe_ >= 0) ::close(pipe_);
  if (process_ < 0) return;
  ::kill(-process_, SIGKILL);
  ::waitpid(process_, nullptr, WNOHANG);
}

Answer BoundedChild::answer(std::chrono::steady_clock::time_point deadline,
                            std::chrono::milliseconds limit) {
  if (process_ < 0) return {.text = "no process could be started to ask it"};
  std::string text;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waiting{pipe_, POLLIN, 0};
    const int ready =
        ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 600'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0)
      return {false, true, "it did not answer within " + std::to_string(limit.count()) + " ms"};
    char part[4096];
    const ssize_t got = ::read(pipe_, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part, to_size(got));
  }
  if (!text.empty()) return {text[0] == answered, false, text.substr(1)};
  int status = 0;
  // The pipe is closed a moment before the process is gone.
  for (int i = 0; i < 100; ++i) {
    if (::waitpid(process_, &status, WNOHANG) == process_) {
      process_ = -1;
      return {false, true, death_of(status)};
    }
    ::usleep(1000);
  }
  return {false, true, "it ended without an answer"};
}

}  // namespace paceline::doctor
