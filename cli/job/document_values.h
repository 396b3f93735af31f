// Values as comma-separated documents have them (docs/formats.md).
#pragma once

#include <string>

namespace paceline::job {

inline double number(double value) {
  return value;
}
template <class Q>
double number(Q value) {
  return value.value();
}

// A cell of a line of values, in quotes where a comma, a quote or a line's end would be read as such.
inline std::string in_csv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace paceline::job
