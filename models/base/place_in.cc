// Tests: tests/models/place_in_test.cc.
#include "models/base/place_in.h"

#include <algorithm>

namespace paceline {

InputPlace place_in(const std::string& file, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  return {file, static_cast<int>(line), static_cast<int>(before.size() - begin) + 1};
}

}  // namespace paceline
