// Where the files of the source tree are that tests read.
#pragma once

#include <string>
#include <string_view>

namespace paceline::test {

// The path of a file or folder of the source tree, named from its root: "docs/examples/recipe.yaml".
[[nodiscard]] std::string source_path(std::string_view path);

// The path of a file of tests/golden.
[[nodiscard]] std::string golden_path(std::string_view file);

}  // namespace paceline::test
