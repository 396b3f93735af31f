// Tests: tests/models/phases_test.cc.
#include "models/phases/length.h"

#include <fmt/core.h>

#include "models/base/error.h"
#include "models/base/parse_units.h"

namespace paceline::models {
namespace {

constexpr const char* remedy = "write a length such as 4 epochs, 500 iterations or 1e6 samples";

std::string_view without_s(std::string_view plural) {
  return plural.substr(0, plural.size() - 1);
}

}  // namespace

std::string_view name(Measure measure) {
  for (const auto& [known, text] : measures) {
    if (known == measure) return text;
  }
  return "unknown";
}

double parse_length_count(std::string_view text) {
  return parse_number(text, shortest, longest);
}

Length parse_length(std::string_view text) {
  const std::size_t digit = text.find_last_of("0123456789");
  if (digit == std::string_view::npos)
    throw InputError(fmt::format("{} has no number", in_quotes(text)), remedy);
  const std::size_t unit = text.find_first_not_of(" \t", digit + 1);
  if (unit == std::string_view::npos)
    throw InputError(fmt::format("{} has no unit", in_quotes(text)), remedy);
  const std::string_view word = text.substr(unit);
  for (const auto& [measure, plural] : measures) {
    if (word == plural || word == without_s(plural))
      return {parse_length_count(text.substr(0, digit + 1)), measure};
  }
  throw InputError(fmt::format("{} is no unit of a length", in_quotes(word)), remedy);
}

std::string to_text(const Length& length) {
  const std::string_view plural = name(length.measure);
  return fmt::format("{:.15g} {}", length.count, length.count == 1 ? without_s(plural) : plural);
}

double samples(const Length& length, double samples_of_an_iteration, double dataset) {
  switch (length.measure) {
    case Measure::epochs:
      return length.count * dataset;
    case Measure::samples:
      return length.count;
    case Measure::iterations:
      return length.count * samples_of_an_iteration;
  }
  return 0;
}

}  // namespace paceline::models
