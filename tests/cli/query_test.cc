#include "cli/serve/query.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/core.h>

#include "models/base/error.h"

namespace paceline::serve {
namespace {

std::string encoded(const std::string& text) {
  std::string out;
  for (const char c : text) out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

TEST(Query, has_names_and_values) {
  EXPECT_EQ(parse_query("ranks=64&theta=4+MiB&what-if=bandwidth%3D2%2Blatency%3D0.5"),
            (std::map<std::string, std::string>{
                {"ranks", "64"}, {"theta", "4 MiB"}, {"what-if", "bandwidth=2+latency=0.5"}}));
  EXPECT_TRUE(parse_query("").empty());
  EXPECT_TRUE(parse_query("&&").empty());
}

TEST(Query, refuses_what_is_ambiguous_or_hostile) {
  for (const char* query : {"ranks", "ranks=", "a=1&a=2", "a=%", "a=%4", "a=%zz", "a=%-1", "a=%00",
                            "a=%0a", "%00=1", "a=\x7f"})
    EXPECT_THROW((void)parse_query(query), InputError) << query;
}

RC_GTEST_PROP(Query, reads_what_was_encoded, ()) {
  const auto is_plain = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
  const auto text = *rc::gen::nonEmpty(
      rc::gen::container<std::string>(rc::gen::suchThat(rc::gen::character<char>(), is_plain)));
  RC_ASSERT(parse_query("a=" + encoded(text)).at("a") == text);
}

RC_GTEST_PROP(Query, reads_or_refuses_any_text, (const std::string& text)) {
  try {
    for (const auto& [name, value] : parse_query(text)) RC_ASSERT(!value.empty());
  } catch (const InputError&) {
  }
}

}  // namespace
}  // namespace paceline::serve
