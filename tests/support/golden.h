// Texts that are kept beside the tests. PACELINE_UPDATE_GOLDEN=1 rewrites them; the diff is then
// reviewed like code.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/source_tree.h"

namespace paceline::test {

// Expects `text` to be what the file of tests/golden holds.
inline void expect_golden(const std::string& file, const std::string& text) {
  const std::string path = golden_path(file);
  if (std::getenv("PACELINE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in) << path;
  const std::string expected{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text, expected) << "PACELINE_UPDATE_GOLDEN=1 rewrites " << path;
}

}  // namespace paceline::test
