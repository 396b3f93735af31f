// Tests: tests/cli/command_test.py.
#include "runtime/training/recipe_json.h"

#include <nlohmann/json.hpp>

namespace paceline::runtime {

std::string to_json(std::span<const Recipe> recipes) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Recipe& recipe : recipes)
    rows.push_back({{"name", recipe.name},
                    {"epochs", recipe.epochs},
                    {"batch_per_rank", recipe.batch_per_rank},
                    {"precision", name(recipe.precision)},
                    {"source", recipe.source}});
  return nlohmann::ordered_json{{"schema", "paceline.recipes/1"}, {"recipes", rows}}.dump(2);
}

}  // namespace paceline::runtime
