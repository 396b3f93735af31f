#include "tests/support/source_tree.h"

namespace paceline::test {

std::string source_path(std::string_view path) {
  return std::string(PACELINE_SOURCE_DIR "/").append(path);
}

std::string golden_path(std::string_view file) {
  return source_path("tests/golden/").append(file);
}

}  // namespace paceline::test
