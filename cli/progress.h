// How far a command is, on standard error.
//
// On a terminal, what takes longer than a second (or than PACELINE_PROGRESS_AFTER_S of the
// environment) has a line that says what is being done and since when; it is written over, and taken away at the end. Above it stand the rows of a table that are
// already done, if the command shows them. Elsewhere (a file, mpirun) a command that takes minutes
// may write a line now and then.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace paceline::cli {

// What is shown where standard error is no terminal.
enum class OffTerminal { nothing, lines };

// The environment's PACELINE_PROGRESS_AFTER_S; `usual` if it is not set.
[[nodiscard]] std::chrono::duration<double> progress_after(std::chrono::duration<double> usual);

// The line cut so that the terminal that standard error is shows it as one.
[[nodiscard]] std::string in_one_line(std::string_view line);

class Progress {
 public:
  explicit Progress(OffTerminal off_terminal = OffTerminal::nothing);
  // The same with `what` as the work that is shown from the start.
  explicit Progress(const std::string& what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { end(); }

  // Says what is done now, and which share of the work is behind it, from 0 to 1.
  void show(const std::string& what, double share);
  // Sets the lines of a table so far, which stand above. They are not shown where a terminal has
  // fewer lines.
  void show_rows(const std::string& rows);
  // Takes everything away, before the command prints its result.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  void watch();
  void draw_first();
  void draw();
  void erase();

  bool is_terminal_;
  bool has_lines_;  // where there is no terminal
  std::chrono::duration<double> before_first_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;  // when a line was written, where there is no terminal
  std::mutex mutex_;                 // guards what follows
  std::condition_variable changed_;
  std::string what_;
  double share_ = 0;
  std::string rows_;
  int lines_ = 0;  // that stand on the terminal, above the one that the cursor is in
  bool is_drawn_ = false;
  bool is_over_ = false;
  std::thread watcher_;  // draws, while the command is at work; only on a terminal
};

}  // namespace paceline::cli
