// Signals that ask a command to stop after it has saved its state: SIGTERM and SIGINT, SIGHUP (the
// terminal is gone), SIGQUIT, and SIGUSR1 and SIGUSR2, by which schedulers warn before they take the
// machine.
#pragma once

#include <exception>
#include <span>

#include "runtime/training/trainer.h"

namespace paceline::cli {

// The signals besides SIGINT, which a supervisor passes on to its rank.
[[nodiscard]] std::span<const int> stop_signals();

// From now on these signals and the first SIGINT are remembered, and do not end the process. A second
// SIGINT does. Signals but SIGTERM and SIGINT that are ignored stay so, as SIGHUP under nohup.
void remember_stop_signals();
// What has been asked for since; where that is several things, the last in the order of StopReason.
// Any thread may call it.
[[nodiscard]] runtime::StopReason stop_asked();

// Whether the process ignores the signal.
[[nodiscard]] bool is_ignored(int signal);

// Thrown by a command that has stopped for a signal, when all is saved and said: no failure, but not
// the end of the work either. main turns it into exit code 128 + the signal's number, as shells do.
class StoppedBySignal : public std::exception {
 public:
  explicit StoppedBySignal(runtime::StopReason reason) : reason_(reason) {}
  [[nodiscard]] const char* what() const noexcept override { return "stopped by a signal"; }
  [[nodiscard]] int exit_code() const;

 private:
  runtime::StopReason reason_;
};

}  // namespace paceline::cli
