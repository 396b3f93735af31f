// What stands on a terminal while a command works: a pseudo-terminal takes the place of standard
// error.
#include "cli/progress.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace paceline::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// While it lives, standard error is a terminal of 12 lines of 40 columns.
class Terminal {
 public:
  Terminal() {
    winsize size = {};
    size.ws_row = 12;
    size.ws_col = 40;
    int screen = -1;
    EXPECT_EQ(::openpty(&master_, &screen, nullptr, nullptr, &size), 0);
    std::fflush(stderr);
    saved_ = ::dup(STDERR_FILENO);
    ::dup2(screen, STDERR_FILENO);
    ::close(screen);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    ::close(master_);
  }

  // What was written since the last call, once `wanted` is in it; or after ten minutes.
  std::string shown(const std::string& wanted) {
    std::string text;
    pollfd waiting = {.fd = master_, .events = POLLIN, .revents = 0};
    while (text.find(wanted) == std::string::npos && ::poll(&waiting, 1, 600'000) == 1) {
      std::array<char, 4096> part;
      const ssize_t length = ::read(master_, part.data(), part.size());
      if (length <= 0) break;
      text.append(part.data(), static_cast<std::size_t>(length));
    }
    return text;
  }

 private:
  int master_ = -1;
  int saved_ = -1;
};

TEST(Progress, ShowsTheRowsThatAreDoneAndTakesThemAway) {
  Terminal terminal;
  Progress progress;
  progress.show_rows("strategy  time\nring      3 us\n");
  progress.show("timing hybrid", 0.25);
  const std::string text = terminal.shown("timing hybrid");
  EXPECT_THAT(text, HasSubstr("strategy  time\r\nring      3 us\r\n25 %, "));
  progress.end();
  EXPECT_THAT(terminal.shown("\x1b[2A\x1b[J"), EndsWith("\r\x1b[2A\x1b[J"));
}

TEST(Progress, CutsLinesAndLeavesOutRowsThatTheTerminalDoesNotHold) {
  Terminal terminal;
  Progress progress;
  std::string rows;
  for (int i = 0; i < 20; ++i) rows += "a row\n";
  progress.show_rows(rows);
  std::string what(100, 'x');
  what += "end";
  progress.show(what, 0);
  const std::string text = terminal.shown("xxx");
  EXPECT_THAT(text, Not(HasSubstr("a row")));
  EXPECT_THAT(text, Not(HasSubstr("end")));
  EXPECT_LT(text.size(), 40U);
}

TEST(Progress, ShowsControlCharactersOfNames) {
  Terminal terminal;
  Progress progress("a \x1b[31m name");
  EXPECT_THAT(terminal.shown("name"), HasSubstr("a \\u001b[31m name"));
}

}  // namespace
}  // namespace paceline::cli
