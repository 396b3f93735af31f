#include "models/base/error.h"

#include <cstdio>
#include <cstdlib>

namespace paceline {
namespace {

std::string message(const InputPlace& place, const std::string& problem,
                    const std::string& remedy) {
  std::string text = place.file;
  if (place.line > 0) text += ":" + std::to_string(place.line);
  if (place.line > 0 && place.column > 0) text += ":" + std::to_string(place.column);
  if (!text.empty()) text += ": ";
  text += problem;
  if (!remedy.empty()) text += "; " + remedy;
  return text;
}

}  // namespace

InputError::InputError(InputPlace place, const std::string& problem, const std::string& remedy)
    : std::runtime_error(message(place, problem, remedy)),
      place_(std::move(place)),
      problem_(problem),
      remedy_(remedy) {}

InputError InputError::at(const InputPlace& place) const {
  return place_.file.empty() ? InputError(place, problem_, remedy_) : *this;
}

void assertion_failed(const char* condition, const char* meaning, const char* file, int line) {
  std::fprintf(stderr, "paceline: broken invariant at %s:%d: %s (%s). Please report this.\n", file,
               line, meaning, condition);
  std::abort();
}

}  // namespace paceline
