// Reads figures, counts and names in YAML mappings of devices, links and clusters. Private to .cc
// files of models/cluster (it shows yaml-cpp).
#pragma once

#include <fmt/core.h>

#include <initializer_list>
#include <string>
#include <type_traits>

#include "models/base/figure.h"
#include "models/base/limits.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/yaml_reader.h"

namespace paceline::models {

// What the figures of an entry rest on where they do not say so themselves.
struct Basis {
  Provenance provenance = Provenance::datasheet;
  std::string source;  // empty: the file and line of the figure itself
};

inline Basis basis_of(const YamlMap& map) {
  Basis basis;
  if (map.has("provenance"))
    basis.provenance =
        map.parsed("provenance", [](const std::string& s) { return provenance_from_name(s); });
  if (map.has("source")) basis.source = map.text("source");
  return basis;
}

template <class Q>
double plain_number(Q quantity) {
  if constexpr (std::is_same_v<Q, double>) {
    return quantity;
  } else {
    return quantity.value();
  }
}

enum class Zero { allowed, refused };

// The figure under `key`: a value with its unit, or {value, low, high, provenance, source}. `parse`
// makes a quantity of a text. Throws InputError, with file and line, also where the value is not
// between low and high, is beyond Limits, or is 0 where that is refused.
template <class F>
auto read_figure(const YamlMap& map, const std::string& key, const Basis& basis, F parse,
                 Zero zero) {
  using Q = decltype(parse(std::string()));
  const auto parse_checked = [&](const std::string& text) {
    const Q value = parse(text);
    if (zero == Zero::refused && plain_number(value) <= 0)
      throw InputError(fmt::format("{} is not more than 0", in_quotes(text)), "");
    if constexpr (!std::is_same_v<Q, double>) {
      if (!within_limits(value)) {
        throw InputError(
            fmt::format("{} is out of range", in_quotes(text)),
            fmt::format("write {} to {}", to_text(Limits<Q>::least), to_text(Limits<Q>::most)));
      }
    }
    return value;
  };
  const YAML::Node node = map.at(key);
  Basis own = basis;
  if (own.source.empty()) own.source = fmt::format("{}:{}", map.file(), map.place_of_key(key).line);
  if (!node.IsMap()) {
    const Q value = map.parsed(key, parse_checked);
    return Figure<Q>::exact(value, own.provenance, own.source);
  }
  const YamlMap figure(node, map.file(), "figure " + key,
                       {"value", "low", "high", "provenance", "source"});
  if (figure.has("provenance"))
    own.provenance =
        figure.parsed("provenance", [](const std::string& s) { return provenance_from_name(s); });
  if (figure.has("source")) own.source = figure.text("source");
  Figure<Q> result =
      Figure<Q>::exact(figure.parsed("value", parse_checked), own.provenance, own.source);
  if (figure.has("low")) result.low = figure.parsed("low", parse_checked);
  if (figure.has("high")) result.high = figure.parsed("high", parse_checked);
  if (plain_number(result.low) > plain_number(result.value) ||
      plain_number(result.value) > plain_number(result.high)) {
    throw InputError(place_of(node, map.file()),
                     fmt::format("{}: its value is not between low and high", key),
                     "write low <= value <= high");
  }
  return result;
}

// Parsers for read_figure.
inline constexpr auto bandwidth = [](const std::string& s) { return parse_bandwidth(s); };
inline constexpr auto seconds = [](const std::string& s) { return parse_seconds(s); };
inline constexpr auto flop_rate = [](const std::string& s) { return parse_flop_rate(s); };
inline constexpr auto bytes = [](const std::string& s) { return parse_bytes(s); };
inline constexpr auto rate = [](const std::string& s) { return parse_rate(s); };
inline constexpr auto power = [](const std::string& s) { return parse_power(s); };
inline constexpr auto price = [](const std::string& s) { return parse_price(s); };
inline constexpr auto share = [](const std::string& s) { return parse_share(s, 1e-3, 1); };

// Puts the figure under `key`, if there is one, into `target`.
template <class Target, class F>
void override_figure(const YamlMap& map, const std::string& key, const Basis& basis, F parse,
                     Target& target, Zero zero = Zero::refused) {
  if (map.has(key)) target = read_figure(map, key, basis, parse, zero);
}

// Throws InputError unless the mapping has all of the keys.
inline void require(const YamlMap& map, std::initializer_list<const char*> keys) {
  for (const char* key : keys) (void)map.at(key);
}

// A whole number from 1 to `most`.
inline int read_count(const YamlMap& map, const std::string& key, int most) {
  return static_cast<int>(
      map.parsed(key, [most](const std::string& s) { return parse_count(s, 1, most); }));
}

// A name that tables and messages can show. `kind` is the noun.
inline std::string checked_name(const YamlMap& map, const std::string& key, const char* kind) {
  std::string name = map.text(key);
  if (name.empty() || in_quotes(name) != "'" + name + "'") {
    throw InputError(map.place_of_key(key),
                     fmt::format("{} is no name for a {}", in_quotes(name), kind),
                     "choose another, up to 60 printable characters");
  }
  return name;
}

}  // namespace paceline::models
