#include "models/base/figure.h"

#include <array>
#include <vector>

#include "models/base/names.h"

namespace paceline {
namespace {

constexpr std::array<std::pair<Provenance, std::string_view>, 6> names = {{
    {Provenance::measured, "measured"},
    {Provenance::calibrated, "calibrated"},
    {Provenance::predicted, "predicted"},
    {Provenance::datasheet, "datasheet"},
    {Provenance::published, "published"},
    {Provenance::assumed, "assumed"},
}};

}  // namespace

std::string_view name(Provenance provenance) {
  for (const auto& [value, text] : names) {
    if (value == provenance) return text;
  }
  return "unknown";
}

Provenance provenance_from_name(std::string_view text) {
  std::vector<std::string> known;
  for (const auto& [value, candidate] : names) {
    if (candidate == text) return value;
    known.emplace_back(candidate);
  }
  throw unknown_name("provenance", text, known);
}

}  // namespace paceline
