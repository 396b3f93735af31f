// Tests: tests/calibration/import_nccl_tests_test.cc, tests/calibration/import_osu_test.cc.
#include "calibration/import/table_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "models/base/limits.h"

namespace paceline::calibration {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Without the tag: "[1,0]<stdout>:# size" becomes "# size".
std::string_view without_tag(std::string_view line) {
  if (!line.starts_with('[')) return line;
  const std::size_t close = line.find("]<std");
  if (close == std::string_view::npos) return line;
  const std::string_view rank = line.substr(1, close - 1);
  const bool tag = !rank.empty() && std::all_of(rank.begin(), rank.end(),
                                                [](char c) { return is_digit(c) || c == ','; });
  const std::size_t end = line.find(">:", close);
  return tag && end != std::string_view::npos ? line.substr(end + 2) : line;
}

}  // namespace

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
    lines.push_back({number, without_tag(line)});
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

Bytes size_cell(std::string_view word, const std::string& file, int line) {
  const std::optional<double> value = number(word);
  if (!is_whole_number(word) || !value || Bytes{*value} > Limits<Bytes>::most)
    throw InputError({file, line}, in_quotes(word) + " is no size",
                     "a row begins with a whole number of bytes, up to 1e15");
  return Bytes{*value};
}

Seconds time_cell(std::string_view word, const std::string& file, int line) {
  const std::optional<double> value = number(word);
  if (!value || *value <= 0 || !within_limits(Seconds{*value * 1e-6}))
    throw InputError({file, line}, in_quotes(word) + " is no time",
                     "times are in microseconds, above 0 and up to 1e9");
  return Seconds{*value * 1e-6};
}

}  // namespace paceline::calibration
