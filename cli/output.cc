// Tests: tests/cli/output_test.cc, tests/cli/output_test.py.
#include "cli/output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "models/base/error.h"
#include "models/base/utf8.h"

namespace paceline::cli {
namespace {

constexpr int width_without_terminal = 100;
constexpr int narrowest = 40;
constexpr int widest = 10'000;

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte < 0x7f) || c == '\n' || c == '\t';
}

// Adds the character that begins the text, of this many bytes.
void append_printable(std::string& out, std::string_view text, std::size_t length) {
  if (length == 0)
    out += '?';
  else if (is_steering(text))
    out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code_point(text)));
  else
    out += text.substr(0, length);
}

// A variable of the environment; empty where it is not set.
std::string_view environment(const char* name) noexcept {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

bool takes_codes(int stream) noexcept {
  return ::isatty(stream) == 1 && environment("TERM") != "dumb";
}

// Whether the stream is a terminal that shows colours, and the user wants them (no-color.org; CLICOLOR).
bool shows_colours(int stream) {
  return takes_codes(stream) && environment("NO_COLOR").empty() && environment("CLICOLOR") != "0";
}

// The text with the row of a table in bold that begins with a star. "* the ..." says what a star means.
std::string with_bold_stars(const std::string& text) {
  std::string out;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, end - from);
    out +=
        line.starts_with("* ") && !line.starts_with("* the ") ? "\x1b[1m" + line + "\x1b[0m" : line;
    if (end < text.size()) out += '\n';
    from = end + 1;
  }
  return out;
}

bool write_all(std::FILE* file, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size();
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t i = 0;
  while (i < text.size()) {
    std::size_t plain = i;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out += text.substr(i, plain - i);
    i = plain;
    if (i == text.size()) break;
    const std::string_view rest = text.substr(i);
    const std::size_t length = character_length(rest);
    append_printable(out, rest, length);
    i += length == 0 ? 1 : length;
  }
  return out;
}

void print_text(std::string_view text) {
  const std::string shown = printable(text);
  if (!write_all(stdout, shows_colours(STDOUT_FILENO) ? with_bold_stars(shown) : shown) ||
      std::ferror(stdout) != 0)
    throw RunError("write to standard output", std::strerror(errno));
}

void notice_text(std::string_view text) noexcept {
  try {
    (void)write_all(stderr, printable(text));
  } catch (const std::exception&) {
    // Without memory there is nothing to say it with.
  }
  (void)std::fflush(stderr);
}

bool can_steer_terminal() noexcept {
  return takes_codes(STDERR_FILENO);
}

void steer_terminal(std::string_view codes) noexcept {
  (void)write_all(stderr, codes);
  (void)std::fflush(stderr);
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw RunError("write to standard output", std::strerror(errno));
}

void warn(const std::vector<std::string>& warnings) {
  const bool in_yellow = shows_colours(STDERR_FILENO);
  for (const std::string& warning : warnings) {
    if (in_yellow) steer_terminal("\x1b[33m");
    notice("paceline: warning: {}\n", warning);
    if (in_yellow) steer_terminal("\x1b[0m");
  }
}

void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // open() takes the lowest number that is free, which is this one. Standard output is opened for
    // reading, so that writing to it fails.
    const int flags = stream == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) != stream) std::abort();
  }
}

bool output_is_terminal() {
  return ::isatty(STDOUT_FILENO) == 1;
}

int table_width() {
  if (const char* columns = std::getenv("COLUMNS")) {
    const int width = std::atoi(columns);
    if (width >= narrowest && width <= widest) return width;
  }
  winsize size = {};
  if (output_is_terminal() && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col >= narrowest)
    return size.ws_col;
  return width_without_terminal;
}

}  // namespace paceline::cli
