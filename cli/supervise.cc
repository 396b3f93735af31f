// Tests: tests/cli/train_test.py (end to end).
#include "cli/supervise.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "models/base/error.h"

namespace paceline::cli {
namespace {

volatile std::sig_atomic_t asked_to_end = 0;
volatile pid_t child = 0;

void ask_child_to_end(int) {
  asked_to_end = 1;
  if (child > 0) ::kill(child, SIGTERM);
}

}  // namespace

int supervised(const std::function<int()>& work,
               const std::function<void(const std::string& signal, int process)>& on_death) {
  std::fflush(nullptr);
  struct sigaction end = {};
  end.sa_handler = ask_child_to_end;
  struct sigaction before = {};
  ::sigaction(SIGTERM, &end, &before);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw RunError("start the rank's process", std::strerror(errno));
  if (pid == 0) {
    ::sigaction(SIGTERM, &before, nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it died before that
    const int code = work();
    std::fflush(nullptr);
    ::_exit(code);
  }
  child = pid;
  if (asked_to_end != 0) ::kill(pid, SIGTERM);
  std::signal(SIGINT, SIG_IGN);  // the child has it too, and decides
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  if (asked_to_end == 0 && signal != SIGINT)
    on_death(fmt::format("SIG{}", ::sigabbrev_np(signal)), static_cast<int>(pid));
  return 1;
}

}  // namespace paceline::cli
