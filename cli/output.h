// Where the command writes: results to standard output, everything else to standard error. All text
// goes through here, so that what a file or a name holds cannot steer the user's terminal.
//
// A result that cannot be written is a failed run. A notice that cannot be written is lost, and the
// run goes on.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline::cli {

// Replaces each character that steers a terminal (is_steering()) but line feed and tab by its code, as
// in "\u001b", which JSON reads, too, and each byte that is no UTF-8 by '?'.
[[nodiscard]] std::string printable(std::string_view text);

// Writes to standard output. Throws RunError if that fails.
void print_text(std::string_view text);
// Writes to standard error. Never throws.
void notice_text(std::string_view text) noexcept;
// Whether standard error is a terminal that takes such codes: one that TERM does not call dumb.
[[nodiscard]] bool can_steer_terminal() noexcept;
// Writes codes that move the cursor of a terminal to standard error, as they are. Never throws.
void steer_terminal(std::string_view codes) noexcept;
// Passes on what was printed so far. Throws RunError if standard output cannot take it.
void flush_output();

template <class... T>
void print(fmt::format_string<T...> format, T&&... values) {
  print_text(fmt::format(format, std::forward<T>(values)...));
}
template <class... T>
void notice(fmt::format_string<T...> format, T&&... values) {
  notice_text(fmt::format(format, std::forward<T>(values)...));
}

// Writes a line "paceline: warning: ..." for each of them to standard error.
void warn(const std::vector<std::string>& warnings);

// Gives standard input, output and error something to lead to where the caller closed them, before
// a file that is opened later takes their place. Writing to a standard output that was closed
// fails. Call it first of all.
void open_closed_streams();

// Counts the columns that a table may take: COLUMNS of the environment if that is set, or else
// those of the terminal that standard output is, or else 100.
[[nodiscard]] int table_width();
// Whether standard output is a terminal: then notes below a table are broken into lines, too.
[[nodiscard]] bool output_is_terminal();
// The width of a table that shows everything.
inline constexpr int unlimited_width = 1'000'000;

}  // namespace paceline::cli
