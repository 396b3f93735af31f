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
  return name_in(names, provenance);
}

Provenance provenance_from_name(std::string_view text) {
  return value_named(names, "provenance", text);
}

}  // namespace paceline
