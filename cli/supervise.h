// Runs a rank in a child process and waits for it, so that a death by a signal has a message that
// names the rank, and an exit code that launchers pass on.
#pragma once

#include <functional>
#include <string>

namespace paceline::cli {

// Runs `work` in a child process and returns its exit code. The child dies with this process. If a
// signal ends it, `on_death` is called with the signal's name ("SIGKILL") and the child's process
// id, and 1 is returned. The signals by which launchers, schedulers and users ask ranks to end
// (stop_signals(), but those that are ignored) go on to the child, and a child that dies after one is
// no death to report. Call it before there are threads.
int supervised(const std::function<int()>& work,
               const std::function<void(const std::string& signal, int process)>& on_death);

}  // namespace paceline::cli
