// How far a command is: a line that is written over on a terminal, and elsewhere (a file, mpirun) a
// line now and then. On standard error.
#pragma once

#include <chrono>
#include <string>

namespace paceline::cli {

class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { end(); }

  // `share` of this kind of work is done, from 0 to 1, and now it does `what`.
  void show(const std::string& what, double share);
  // Takes the line away, before the command prints its result.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_terminal_;
  bool is_open_ = false;  // a line that can be written over
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

}  // namespace paceline::cli
