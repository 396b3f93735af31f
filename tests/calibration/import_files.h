// The files of tests/golden/imports.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/source_tree.h"

namespace paceline::calibration {

inline std::string golden_import(const std::string& file) {
  std::ifstream in(test::golden_path("imports/" + file), std::ios::binary);
  EXPECT_TRUE(in) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}

// The text with the first `from` replaced by `to`; fails if there is none.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace paceline::calibration
