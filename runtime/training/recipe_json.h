// Recipes as JSON, for tools (docs/formats.md).
#pragma once

#include <vector>

#include "models/base/document.h"
#include "runtime/training/recipe.h"

namespace paceline::runtime {

[[nodiscard]] const Document<std::vector<Recipe>>& recipes_document();

}  // namespace paceline::runtime
