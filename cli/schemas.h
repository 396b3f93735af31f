// The JSON schemas of the documents that the command writes: those of the tables that write them.
#pragma once

#include <string>
#include <vector>

#include "models/base/json.h"

namespace paceline::cli {

struct Schema {
  std::string name;  // "paceline.prediction/1"
  std::string description;
  Json (*json)();
};

// In the order of their names.
[[nodiscard]] std::vector<Schema> schemas();

}  // namespace paceline::cli
