// Tests: tests/cli/query_test.cc.
#include "cli/serve/query.h"

#include <fmt/core.h>

#include <charconv>

#include "models/base/error.h"

namespace paceline::serve {
namespace {

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == '+') c = ' ';
    if (c == '%') {
      const std::string_view digits = text.substr(i + 1, 2);
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), c, 16);
      if (digits.size() < 2 || error != std::errc() || end != digits.data() + 2)
        throw InputError("a percent sign without two hexadecimal digits",
                         "write %25 for the sign itself");
      i += 2;
    }
    if (c < 0x20 || c == 0x7f) throw InputError("a control character in the query", "leave it out");
    out += static_cast<char>(c);
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> parse_query(std::string_view query) {
  std::map<std::string, std::string> values;
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      throw InputError(fmt::format("{} has no value", in_quotes(decoded(part))),
                       "write it as in ranks=64");
    const std::string name = decoded(part.substr(0, equals));
    const std::string value = decoded(part.substr(equals + 1));
    if (value.empty())
      throw InputError(fmt::format("{} is empty", in_quotes(name)),
                       "give it a value, or leave it out");
    if (!values.emplace(name, value).second)
      throw InputError(fmt::format("{} is there twice", in_quotes(name)), "give it once");
  }
  return values;
}

}  // namespace paceline::serve
