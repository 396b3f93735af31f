// Tests: tests/runtime/training/recipe_test.cc.
#include <algorithm>
#include <array>
#include <string>

#include "models/base/names.h"
#include "runtime/training/recipe.h"

namespace paceline::runtime {

// Written by paceline_embed.
std::string_view embedded_file(std::string_view name);

namespace {

constexpr std::array<std::string_view, 9> names = {"akiba-2017", "chainermn-2018", "fashion-mnist",
                                                   "goyal-2017", "jizhi-alexnet",  "jizhi-resnet50",
                                                   "paisoar",    "smith-2017",     "text-tiny"};

std::string file_of(std::string_view name) {
  return std::string(name) + ".yaml";
}

}  // namespace

std::span<const ShippedRecipe> shipped_recipes() {
  static const std::array<ShippedRecipe, names.size()> all = [] {
    std::array<ShippedRecipe, names.size()> recipes;
    for (std::size_t i = 0; i < names.size(); ++i)
      recipes[i] = {names[i], embedded_file(file_of(names[i]))};
    return recipes;
  }();
  return all;
}

Recipe shipped_recipe(std::string_view name) {
  for (const ShippedRecipe& recipe : shipped_recipes())
    if (recipe.name == name) return parse_recipe(recipe.yaml, file_of(name));
  throw unknown_name("recipe", name, {names.begin(), names.end()});
}

}  // namespace paceline::runtime
