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
#include <vector>

#include "cli/stop_signals.h"
#include "models/base/error.h"

namespace paceline::cli {
namespace {

volatile std::sig_atomic_t asked_to_end = 0;  // the last signal that asked, or 0
volatile pid_t child = 0;

// A signal to a whole process group reaches the child twice, which counts once.
void ask_child_to_end(int signal) {
  asked_to_end = signal;
  if (child > 0) ::kill(child, signal);
}

// What the process does at each of stop_signals().
std::vector<struct sigaction> actions_now() {
  std::vector<struct sigaction> actions;
  for (const int signal : stop_signals()) ::sigaction(signal, nullptr, &actions.emplace_back());
  return actions;
}

}  // namespace

int supervised(const std::function<int()>& work,
               const std::function<void(const std::string& signal, int process)>& on_death) {
  std::fflush(nullptr);
  struct sigaction end = {};
  end.sa_handler = ask_child_to_end;
  const std::vector<struct sigaction> before = actions_now();
  for (const int signal : stop_signals()) {
    if (signal == SIGTERM || !is_ignored(signal)) ::sigaction(signal, &end, nullptr);
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw RunError("start the rank's process", std::strerror(errno));
  if (pid == 0) {
    for (std::size_t i = 0; i < before.size(); ++i)
      ::sigaction(stop_signals()[i], &before[i], nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it died before that
    const int code = work();
    std::fflush(nullptr);
    ::_exit(code);
  }
  child = pid;
  if (asked_to_end != 0) ::kill(pid, asked_to_end);
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
