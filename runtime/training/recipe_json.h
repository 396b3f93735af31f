// Recipes as JSON, for tools (schema paceline.recipes/1, docs/formats.md).
#pragma once

#include <span>
#include <string>

#include "runtime/training/recipe.h"

namespace paceline::runtime {

// The whole document: what tells the recipes apart, and their sources.
[[nodiscard]] std::string to_json(std::span<const Recipe> recipes);

}  // namespace paceline::runtime
