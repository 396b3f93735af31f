// Tests: tests/cli/train_test.py (end to end).
#include "cli/stop_signals.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::cli {
namespace {

using runtime::StopReason;

// By StopReason. There is none for StopReason::none.
constexpr std::array<int, runtime::stop_reasons> signals = {0,       SIGINT,  SIGQUIT, SIGHUP,
                                                            SIGUSR1, SIGUSR2, SIGTERM};

// A handler reaches nothing but a global. Ranks that are threads read it, too, so that it is atomic.
std::array<std::atomic<bool>, runtime::stop_reasons> asked = {};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler takes no lock");

void remember(int signal) {
  for (std::size_t reason = 1; reason < signals.size(); ++reason) {
    if (signals[reason] == signal) asked[reason] = true;
  }
}

}  // namespace

std::span<const int> stop_signals() {
  return std::span(signals).subspan(to_size(StopReason::quit));
}

bool is_ignored(int signal) {
  struct sigaction action = {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void remember_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  for (const int signal : stop_signals()) {
    if (signal == SIGTERM || !is_ignored(signal)) ::sigaction(signal, &action, nullptr);
  }
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

StopReason stop_asked() {
  for (std::size_t reason = signals.size() - 1; reason > 0; --reason) {
    if (asked[reason]) return static_cast<StopReason>(reason);
  }
  return StopReason::none;
}

int StoppedBySignal::exit_code() const {
  return 128 + signals[to_size(reason_)];
}

}  // namespace paceline::cli
