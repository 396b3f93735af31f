// Values as the documents of docs/formats.md have them: JSON and comma-separated.
#pragma once

#include <optional>
#include <string>

#include "models/base/figure.h"
#include "models/base/json.h"

namespace paceline::job {

inline double number(double value) {
  return value;
}
template <class Q>
double number(Q value) {
  return value.value();
}

// "time_s", "time_low_s" and "time_high_s" for the name "time" and the unit "s"; "efficiency_low"
// where there is no unit.
template <class Q>
void add_interval(Json& json, const std::string& name, const std::string& unit,
                  const Figure<Q>& figure) {
  const std::string ending = unit.empty() ? "" : "_" + unit;
  json[name + ending] = number(figure.value);
  json[name + "_low" + ending] = number(figure.low);
  json[name + "_high" + ending] = number(figure.high);
}

// The same; where there is no figure, the name and the unit alone are null.
template <class Q>
void add_interval(Json& json, const std::string& name, const std::string& unit,
                  const std::optional<Figure<Q>>& figure) {
  if (figure)
    add_interval(json, name, unit, *figure);
  else
    json[unit.empty() ? name : name + "_" + unit] = nullptr;
}

// A figure that is stated, with what it rests on; null where there is none.
template <class Q>
Json stated(const std::optional<Figure<Q>>& figure, const char* unit) {
  if (!figure) return nullptr;
  return {{"unit", unit},
          {"value", number(figure->value)},
          {"low", number(figure->low)},
          {"high", number(figure->high)},
          {"provenance", name(figure->provenance)},
          {"source", figure->source}};
}

// A cell of a line of values, in quotes where a comma, a quote or a line's end would be read as such.
inline std::string in_csv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace paceline::job
