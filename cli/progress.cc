// Tests: tests/cli/progress_test.cc; tests/cli/progress_test.py (on a pseudo-terminal).
#include "cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cli/output.h"

namespace paceline::cli {
namespace {

// A command that is done before this time shows nothing on a terminal.
constexpr std::chrono::seconds before_first{1};
constexpr std::chrono::milliseconds between_frames{500};
// The time between two lines where there is no terminal. A command that is done before the first
// says nothing.
constexpr std::chrono::seconds between_lines{5};

struct Screen {
  int columns = 80;
  int lines = 24;
};

Screen screen() {
  winsize size = {};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {size.ws_col, size.ws_row};
}

// Cuts a line to at most `columns` characters.
std::string cut(std::string_view line, int columns) {
  std::string shown;
  for (const char c : line) {
    const bool is_first_byte = (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (is_first_byte && columns-- == 0) break;
    shown += c;
  }
  return shown;
}

}  // namespace

std::chrono::duration<double> progress_after(std::chrono::duration<double> usual) {
  constexpr double most = 1e6;
  const char* const text = std::getenv("PACELINE_PROGRESS_AFTER_S");
  char* end = nullptr;
  const double seconds = text != nullptr ? std::strtod(text, &end) : 0;
  const bool is_number = text != nullptr && end != text && seconds >= 0 && seconds <= most;
  return is_number ? std::chrono::duration<double>(seconds) : usual;
}

std::string in_one_line(std::string_view line) {
  return cut(line, screen().columns - 1);
}

Progress::Progress(OffTerminal off_terminal)
    : is_terminal_(can_steer_terminal()),
      has_lines_(off_terminal == OffTerminal::lines),
      before_first_(progress_after(before_first)) {
  if (is_terminal_) watcher_ = std::thread([this] { watch(); });
}

Progress::Progress(const std::string& what) : Progress() {
  const std::lock_guard lock(mutex_);
  what_ = what;
  draw_first();
}

void Progress::show(const std::string& what, double share) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  share_ = share;
  draw_first();
  if (is_terminal_ || !has_lines_) return;
  const Clock::time_point now = Clock::now();
  if (now - last_ < between_lines) return;
  last_ = now;
  notice("{:3.0f} %, {:.0f} s: {}\n", 100 * share,
         std::chrono::duration<double>(now - start_).count(), what);
}

void Progress::show_rows(const std::string& rows) {
  const std::lock_guard lock(mutex_);
  rows_ = rows;
}

void Progress::watch() {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, before_first_, [this] { return is_over_; })) return;
  do {
    if (!what_.empty()) draw();
  } while (!changed_.wait_for(lock, between_frames, [this] { return is_over_; }));
}

// What is said for the first time when the time before that has passed does not wait for a frame.
void Progress::draw_first() {
  if (is_terminal_ && !is_drawn_ && Clock::now() - start_ >= before_first_) draw();
}

void Progress::draw() {
  erase();
  const Screen terminal = screen();
  std::string text;
  const auto rows = static_cast<int>(std::count(rows_.begin(), rows_.end(), '\n'));
  if (rows > 0 && rows < terminal.lines - 1) {
    std::size_t from = 0;
    while (from < rows_.size()) {
      const std::size_t end = rows_.find('\n', from);
      text +=
          printable(cut(std::string_view(rows_).substr(from, end - from), terminal.columns - 1));
      text += "\n";
      from = end + 1;
    }
    lines_ = rows;
  }
  const double passed = std::chrono::duration<double>(Clock::now() - start_).count();
  const std::string share = share_ > 0 ? fmt::format("{:.0f} %, ", 100 * share_) : "";
  text += in_one_line(printable(fmt::format("{}{:.0f} s: {}", share, passed, what_)));
  steer_terminal(text);
  is_drawn_ = true;
}

void Progress::erase() {
  if (!is_drawn_) return;
  steer_terminal(lines_ > 0 ? fmt::format("\r\x1b[{}A\x1b[J", lines_) : std::string("\r\x1b[J"));
  lines_ = 0;
  is_drawn_ = false;
}

void Progress::end() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    erase();
  }
  changed_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

}  // namespace paceline::cli
