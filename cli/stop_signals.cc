// Tests: tests/cli/train_test.py (end to end).
#include "cli/stop_signals.h"

#include <atomic>
#include <csignal>

#include "models/base/error.h"

namespace paceline::cli {
namespace {

using runtime::StopReason;

// A handler reaches nothing but a global. Ranks that are threads read it, too, so that it is atomic.
std::atomic<bool> terminated = false;
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler takes no lock");

void remember(int signal) {
  if (signal == SIGTERM) terminated = true;
  if (signal == SIGINT) interrupted = true;
}

}  // namespace

void remember_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

StopReason stop_asked() {
  if (terminated) return StopReason::terminated;
  return interrupted ? StopReason::interrupted : StopReason::none;
}

int StoppedBySignal::exit_code() const {
  return 128 + (reason_ == StopReason::terminated ? SIGTERM : SIGINT);
}

}  // namespace paceline::cli
