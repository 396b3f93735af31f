// Tests: tests/calibration/import_nccl_tests_test.cc, tests/calibration/import_osu_test.cc.
#include "calibration/import/table_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "models/base/limits.h"

namespace paceline::calibration {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr std::string_view blanks = " \t";

std::string_view without_blanks(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(blanks), line.size()));
}

bool is_made_of(std::string_view word, std::string_view characters) {
  return !word.empty() && word.find_first_not_of(characters) == std::string_view::npos;
}

// How long the date at the beginning of the text is, or the time of day: "2025-05-16T16:39:51.2Z ",
// "2025-05-16 16:39:51 " and "[2025-05-16 16:39:51] ", with a zone or without. 0 if there is none.
std::size_t length_of_time(std::string_view text) {
  const bool bracket = text.starts_with('[');
  std::size_t end = bracket ? 1 : 0;
  const std::string_view date = text.substr(end, 10);
  const bool is_date = date.size() == 10 && date[4] == '-' && date[7] == '-' &&
                       is_made_of(date, "0123456789-") && end + 10 < text.size() &&
                       (text[end + 10] == 'T' || text[end + 10] == ' ');
  if (!is_date) return 0;
  end += 11;
  const std::size_t rest = text.find_first_not_of("0123456789:.,+-Z", end);
  const std::string_view time =
      text.substr(end, rest == std::string_view::npos ? rest : rest - end);
  if (time.size() < 8 || time[2] != ':' || time[5] != ':') return 0;
  end = std::min(rest, text.size());
  if (!bracket) return end;
  return end < text.size() && text[end] == ']' ? end + 1 : 0;
}

// How long the prefix at the beginning of the text is, behind others or as the first. 0 if there is
// none.
std::size_t length_of_prefix(std::string_view text, bool behind_another) {
  if (const std::size_t time = length_of_time(text); time > 0) return time;
  const std::size_t close = text.find(text.starts_with('(') ? ')' : ']');
  if (close != std::string_view::npos && close + 1 < text.size() && text[close + 1] == ' ') {
    const std::string_view inside = text.substr(1, close - 1);
    const bool pod = text.starts_with("[pod/");
    const bool ray = text.starts_with('(') && inside.find("pid=") != std::string_view::npos;
    const bool rank = text.starts_with('[') && is_made_of(inside, "0123456789");
    if (pod || ray || rank) return close + 1;
  }
  const std::size_t word = std::min(text.find_first_of(blanks), text.size());
  const std::string_view first = text.substr(0, word);
  const std::string_view rest = without_blanks(text.substr(word));
  if (first.ends_with(':') && rest.starts_with("# ")) return word;
  if (first.ends_with(':') && is_made_of(first.substr(0, first.size() - 1), "0123456789"))
    return word;
  if (first == "|" && (behind_another || length_of_time(rest) > 0)) return 1;
  if (!first.empty() && rest.starts_with("| ") && first.find_first_of("#|") != 0 &&
      !is_made_of(first, "0123456789"))
    return text.size() - rest.size() + 1;
  return 0;
}

}  // namespace

std::string_view without_prefixes(std::string_view line) {
  for (const std::string_view stream : {"]<stdout>:", "]<stderr>:"}) {
    constexpr std::size_t farthest = 200;
    const std::size_t tag = line.substr(0, farthest).find(stream);
    if (tag != std::string_view::npos) line = without_blanks(line.substr(tag + stream.size()));
  }
  constexpr int most = 4;
  for (int i = 0; i < most; ++i) {
    const std::string_view text = without_blanks(line);
    const std::size_t length = length_of_prefix(text, i > 0);
    if (length == 0) break;
    line = without_blanks(text.substr(length));
  }
  return line;
}

std::vector<TextLine> text_lines(std::string_view text, const std::string& file) {
  std::vector<TextLine> lines;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find('\0') != std::string_view::npos)
      throw InputError({file, number}, "this is no text", "give what the tool printed");
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({number, without_prefixes(line)});
  }
  return lines;
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> found;
  constexpr std::string_view blank = " \t\v\f\r";
  std::size_t begin = line.find_first_not_of(blank);
  while (begin != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(blank, begin), line.size());
    found.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(blank, end);
  }
  return found;
}

std::string printable(std::string_view text) {
  const std::string quoted = in_quotes(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::optional<double> number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

bool is_whole_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), is_digit);
}

void count_row(std::size_t& rows, const InputPlace& place) {
  if (++rows > most_table_rows)
    throw InputError(place, fmt::format("there are more than {} rows", most_table_rows),
                     "give fewer");
}

InputError wrong_columns(std::size_t found, std::size_t expected, const InputPlace& place) {
  return {place, fmt::format("{} columns, where the header has {}", found, expected),
          "give the output as it is"};
}

int count_cell(std::string_view word, const std::string& what, const std::string& file, int line) {
  constexpr double most = 1e6;
  const std::optional<double> value = number(word);
  if (!is_whole_number(word) || !value || *value < 1 || *value > most)
    throw InputError({file, line}, in_quotes(word) + " is no number of " + what,
                     "give the output as it is");
  return static_cast<int>(*value);
}

Bytes size_cell(std::string_view word, const std::string& file, int line) {
  const std::optional<double> value = number(word);
  if (!is_whole_number(word) || !value || Bytes{*value} > Limits<Bytes>::most)
    throw InputError({file, line}, in_quotes(word) + " is no size",
                     "a row begins with a whole number of bytes, up to 1e15");
  return Bytes{*value};
}

Seconds time_cell(std::string_view word, double unit, const std::string& file, int line) {
  constexpr double milli = 1e-3;
  const std::optional<double> value = number(word);
  if (!value || *value <= 0 || !within_limits(Seconds{*value * unit}))
    throw InputError({file, line}, in_quotes(word) + " is no time",
                     unit == milli ? "times are in milliseconds, above 0 and up to 1e6"
                                   : "times are in microseconds, above 0 and up to 1e9");
  return Seconds{*value * unit};
}

}  // namespace paceline::calibration
