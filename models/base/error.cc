#include "models/base/error.h"

#include <cstdio>
#include <cstdlib>

#include "models/base/utf8.h"

namespace paceline {
namespace {

// The length in bytes of the printable UTF-8 character at the start of `text`; 0 if there is none.
std::size_t printable_length(std::string_view text) {
  const std::size_t length = character_length(text);
  return length == 0 || is_steering(text) ? 0 : length;
}

// The text up to at most `longest` bytes, cut between characters.
std::string one_line(std::string_view text, std::size_t longest = std::string::npos) {
  std::string line;
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    const std::string_view shown = length == 0 ? std::string_view("?") : text.substr(0, length);
    if (shown.size() > longest - line.size()) break;
    line += shown;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return line;
}

std::string message(const InputPlace& place, const std::string& problem,
                    const std::string& remedy) {
  std::string text = one_line(place.file);
  if (place.line > 0) text += ":" + std::to_string(place.line);
  if (place.line > 0 && place.column > 0) text += ":" + std::to_string(place.column);
  if (!text.empty()) text += ": ";
  text += one_line(problem);
  if (!remedy.empty()) text += "; " + one_line(remedy);
  return text;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  return "'" + one_line(text, longest) + (text.size() > longest ? "...'" : "'");
}

InputError::InputError(InputPlace place, const std::string& problem, const std::string& remedy)
    : std::runtime_error(message(place, problem, remedy)),
      place_(std::move(place)),
      problem_(one_line(problem)),
      remedy_(one_line(remedy)) {}

InputError InputError::at(const InputPlace& place) const {
  return place_.file.empty() ? InputError(place, problem_, remedy_) : *this;
}

void assertion_failed(const char* condition, const char* meaning, const char* file, int line) {
  std::fprintf(stderr, "paceline: broken invariant at %s:%d: %s (%s). Please report this.\n", file,
               line, meaning, condition);
  std::abort();
}

}  // namespace paceline
