#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace paceline::cli {
namespace {

// Between two lines where there is no terminal; a command that is done by then says nothing.
constexpr std::chrono::seconds between_lines{5};

}  // namespace

Progress::Progress() : is_terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::show(const std::string& what, double share) {
  if (is_terminal_) {
    fmt::print(stderr, "\r{:3.0f} % {:<60.60}", 100 * share, what);
    is_open_ = true;
  } else {
    const Clock::time_point now = Clock::now();
    if (now - last_ < between_lines) return;
    last_ = now;
    fmt::print(stderr, "{:3.0f} %, {:.0f} s: {}\n", 100 * share,
               std::chrono::duration<double>(now - start_).count(), what);
  }
  std::fflush(stderr);
}

void Progress::end() {
  if (is_open_) fmt::print(stderr, "\r{:66}\r", "");
  is_open_ = false;
}

}  // namespace paceline::cli
