// The catalogue of networks, built from layers. Totals are exact and held in tests.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/network/network.h"

namespace paceline::models {

struct ZooEntry {
  std::string_view name;
  std::string_view description;  // with its source
  Network (*build)() = nullptr;
};

[[nodiscard]] std::span<const ZooEntry> zoo();
[[nodiscard]] bool is_in_zoo(std::string_view name);
// Throws InputError that suggests the nearest name.
[[nodiscard]] Network zoo_network(std::string_view name);

}  // namespace paceline::models
