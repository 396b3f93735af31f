// Tests: tests/cli/command_test.py, tests/cli/schemas_test.py.
#include "runtime/training/recipe_json.h"

#include <functional>

namespace paceline::runtime {
namespace {

const Document<Recipe>& recipe_document() {
  static const auto document = Document<Recipe>()
                                   .add("name", &Recipe::name)
                                   .add("epochs", &Recipe::epochs, at_least(1))
                                   .add("batch_per_rank", &Recipe::batch_per_rank, at_least(1))
                                   .add("precision", &Recipe::precision)
                                   .add("source", &Recipe::source);
  return document;
}

}  // namespace

const Document<std::vector<Recipe>>& recipes_document() {
  static const auto document =
      Document<std::vector<Recipe>>("paceline.recipes/1", "paceline show recipes --json.")
          .add("recipes", std::identity(), recipe_document(), 1);
  return document;
}

}  // namespace paceline::runtime
