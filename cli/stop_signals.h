// SIGTERM and SIGINT as a wish to stop, for a command that has something to save first.
#pragma once

#include <exception>

#include "runtime/training/trainer.h"

namespace paceline::cli {

// From now on SIGTERM and the first SIGINT are remembered, and do not end the process. A second
// SIGINT does.
void remember_stop_signals();
// What has been asked for since; SIGTERM counts more than SIGINT. Any thread may call it.
[[nodiscard]] runtime::StopReason stop_asked();

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
