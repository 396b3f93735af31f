// paceline show recipes: the recipes that are shipped, or one of them as YAML to start from.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/training_options.h"
#include "runtime/training/recipe.h"
#include "runtime/training/recipe_json.h"

namespace paceline::cli {
namespace {

struct Options {
  std::string name;
  bool json = false;
};

void run(const Options& options) {
  if (!options.name.empty()) {
    static_cast<void>(runtime::shipped_recipe(options.name));  // suggests the nearest name
    const auto shipped = runtime::shipped_recipes();
    print("{}", std::ranges::find(shipped, options.name, &runtime::ShippedRecipe::name)->yaml);
    return;
  }
  std::vector<runtime::Recipe> recipes;
  for (const runtime::ShippedRecipe& shipped : runtime::shipped_recipes())
    recipes.push_back(runtime::shipped_recipe(shipped.name));
  if (options.json) {
    print("{}\n", runtime::to_json(recipes));
    return;
  }
  Table table({{"recipe", Align::left},
               {"epochs"},
               {"batch per rank"},
               {"precision", Align::left},
               {"source", Align::left}});
  for (const runtime::Recipe& recipe : recipes)
    table.add({recipe.name, fmt::format("{}", recipe.epochs),
               fmt::format("{}", recipe.batch_per_rank), job::precision_text(recipe),
               recipe.source});
  print("{}", table.text());
}

}  // namespace

void add_show_recipes(Command& show) {
  Command& command =
      show.add_command("recipes", "The shipped training recipes, or one of them as YAML");
  const auto options = std::make_shared<Options>();
  command.add_option("name", options->name, "The recipe to print").value("NAME");
  command.add_flag("--json", options->json, "Print one JSON document");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
