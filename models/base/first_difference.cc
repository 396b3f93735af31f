// Tests: tests/models/base_messages_test.cc.
#include "models/base/first_difference.h"

#include <algorithm>

namespace paceline {

std::pair<std::string, std::string> first_difference(std::string_view a, std::string_view b) {
  const auto line = [](std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string first(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return first;
  };
  while (!a.empty() || !b.empty()) {
    std::string of_a = line(a);
    std::string of_b = line(b);
    if (of_a != of_b) return {std::move(of_a), std::move(of_b)};
  }
  return {};
}

}  // namespace paceline
