// Tests: tests/cli/command_test.py.
#include "runtime/training/recipe_json.h"

#include "models/base/json.h"

namespace paceline::runtime {

std::string to_json(std::span<const Recipe> recipes) {
  Json rows = Json::array();
  for (const Recipe& recipe : recipes)
    rows.push_back({{"name", recipe.name},
                    {"epochs", recipe.epochs},
                    {"batch_per_rank", recipe.batch_per_rank},
                    {"precision", name(recipe.precision)},
                    {"source", recipe.source}});
  return Json{{"schema", "paceline.recipes/1"}, {"recipes", rows}}.indented();
}

}  // namespace paceline::runtime
