// Tests: tests/cli/train_test.py (end to end).
#include "cli/stop_signals.h"

#include <csignal>

#include "models/base/error.h"

namespace paceline::cli {
namespace {

using runtime::StopReason;

// A handler reaches nothing but a global.
volatile std::sig_atomic_t terminated = 0;
volatile std::sig_atomic_t interrupted = 0;

void remember(int signal) {
  if (signal == SIGTERM) terminated = 1;
  if (signal == SIGINT) interrupted = 1;
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
  if (terminated != 0) return StopReason::terminated;
  return interrupted != 0 ? StopReason::interrupted : StopReason::none;
}

int StoppedBySignal::exit_code() const {
  return 128 + (reason_ == StopReason::terminated ? SIGTERM : SIGINT);
}

}  // namespace paceline::cli
