// paceline show recipes: the recipes that are shipped, or one of them as YAML to start from.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "cli/training_options.h"
#include "models/base/json_records.h"
#include "runtime/training/recipe.h"
#include "runtime/training/recipe_json.h"

namespace paceline::cli {
namespace {

struct Options {
  std::string name;
  bool wide = false;
  OutputFormat format;
};

Table table_of(const std::vector<runtime::Recipe>& recipes) {
  Table table({{"recipe", Align::left},
               {"epochs"},
               {"batch per rank"},
               {"precision", Align::left, 1},
               {.title = "source", .align = Align::left, .wraps = true}});
  for (const runtime::Recipe& recipe : recipes)
    table.add({recipe.name, fmt::format("{}", recipe.epochs),
               fmt::format("{}", recipe.batch_per_rank), job::precision_text(recipe),
               recipe.source});
  return table;
}

void run(const Options& options) {
  check_output_format(options.format);
  if (!options.name.empty()) {
    refuse_output_format(options.format, "a recipe is printed as YAML");
    static_cast<void>(runtime::shipped_recipe(options.name));  // suggests the nearest name
    const auto shipped = runtime::shipped_recipes();
    print("{}", std::ranges::find(shipped, options.name, &runtime::ShippedRecipe::name)->yaml);
    return;
  }
  std::vector<runtime::Recipe> recipes;
  for (const runtime::ShippedRecipe& shipped : runtime::shipped_recipes())
    recipes.push_back(runtime::shipped_recipe(shipped.name));
  print_answer(options.format,
               {.document = [&] { return runtime::recipes_document().json(recipes); },
                .records = {{"recipes"}},
                .markdown = [&] { return table_of(recipes).markdown(); },
                .text =
                    [&](int width) {
                      const Table::Fitted fitted = table_of(recipes).fitted(width);
                      return fitted.text + fitted.not_shown();
                    },
                .wide = options.wide});
}

}  // namespace

void add_show_recipes(Command& show) {
  Command& command =
      show.add_command("recipes", "The shipped training recipes, or one of them as YAML");
  const auto options = std::make_shared<Options>();
  command.add_option("name", options->name, "The recipe to print").value("NAME");
  add_wide_option(command, options->wide);
  add_output_formats(command, options->format);
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
