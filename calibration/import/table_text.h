// Lines, words and numbers of the text that tools print, for the readers beside this header.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/error.h"
#include "models/base/units.h"

namespace paceline::calibration {

// The most rows that a table may have.
inline constexpr std::size_t most_table_rows = 100'000;

struct TextLine {
  int number = 0;  // from 1
  std::string_view text;
};

// A line without what launchers and collectors of logs put before it: mpirun's "[1,0]<stdout>:" with
// whatever stands before it, srun's "0: ", kubectl's "[pod/NAME/CONTAINER] ", Docker Compose's
// "NAME  | ", Ray's "(NAME pid=1) ", MPICH's "[0] ", "HOST: " before a "#", and dates with a time of
// day. Blanks that stand behind any of these are gone, too.
[[nodiscard]] std::string_view without_prefixes(std::string_view line);

// The lines of a text without their ends, "\n" or "\r\n", and without these prefixes. Throws
// InputError if the text holds a NUL, as no text does.
[[nodiscard]] std::vector<TextLine> text_lines(std::string_view text, const std::string& file);

// Reads a text line by line, and returns what reader.finish() returns. A Reader is made of the file's name,
// and its read() is called with each TextLine.
template <class Reader, class... More>
[[nodiscard]] auto read_lines(std::string_view text, const std::string& file, More... more) {
  Reader reader(file, more...);
  for (const TextLine& line : text_lines(text, file)) reader.read(line);
  return reader.finish();
}

// The beginning of a text, by which its format is known.
[[nodiscard]] inline std::string_view head_of(std::string_view text) {
  constexpr std::size_t head = 1 << 16;
  return text.substr(0, head);
}

// The words of a line, which blanks and tabs separate.
[[nodiscard]] std::vector<std::string_view> words(std::string_view line);

// Text of a file fit for a name: at most 60 bytes, without control characters, in valid UTF-8.
[[nodiscard]] std::string printable(std::string_view text);

// The decimal number that the whole word is. Nothing for other words, for infinity and for "nan".
[[nodiscard]] std::optional<double> number(std::string_view word);
[[nodiscard]] bool is_whole_number(std::string_view word);

// Throws InputError after most_table_rows rows. `rows` are those before this one.
void count_row(std::size_t& rows, const InputPlace& place);
// The error of a row that has other columns than its header.
[[nodiscard]] InputError wrong_columns(std::size_t found, std::size_t expected,
                                       const InputPlace& place);
// A number of ranks or processes, from 1 to 1,000,000. Throws InputError that names the line and `what` it is
// no number of.
[[nodiscard]] int count_cell(std::string_view word, const std::string& what,
                             const std::string& file, int line);
// The number of a cell. Both throw InputError that names the line, what the column is and what
// would be right.
[[nodiscard]] Bytes size_cell(std::string_view word, const std::string& file, int line);
// The time of a cell in units of this many seconds, 1e-6 or 1e-3, above 0 and up to 1000 s.
[[nodiscard]] Seconds time_cell(std::string_view word, double unit, const std::string& file,
                                int line);

}  // namespace paceline::calibration
