#include "cli/page/page.h"

#include <gtest/gtest.h>

namespace paceline::page {
namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

Page page_of(const std::string& title, const std::string& json) {
  return {.title = title,
          .command = "paceline predict --model '" + title + "'",
          .version = "1",
          .documents = {{"result", json}}};
}

TEST(Page, HoldsAllThatItNeeds) {
  const std::string text = html(page_of("a network", R"({"schema": "s"})"));
  EXPECT_EQ(count(text, "src="), 0U);
  EXPECT_EQ(count(text, "<link"), 0U);
  EXPECT_EQ(count(text, "@import"), 0U);
  EXPECT_NE(text.find("default-src 'none'; script-src 'sha256-"), std::string::npos);
  EXPECT_NE(text.find("Copyright (c) 2022 Leon Sorokin"), std::string::npos);
  EXPECT_EQ(count(text, "{{"), 0U) << "a place of the frame is left";
}

TEST(Page, WhatIfHasTheSameCharts) {
  const std::string script = what_if_script();
  for (const char* part : {"Copyright (c) 2022 Leon Sorokin", "const charts = ",
                           "const timeline = ", "reports[\"paceline.prediction/1\"]"})
    EXPECT_EQ(count(script, part), 1U) << part;
  const std::string report = html(page_of("a", "{}"));
  EXPECT_EQ(count(report, "class: \"sliders\""), 0U);
  EXPECT_EQ(count(what_if_html(), "<script"), 1U) << "the policy of the server allows no other";
  EXPECT_EQ(count(what_if_html(), "style="), 0U);
}

TEST(Page, TakesNamesForText) {
  const std::string plain = html(page_of("a", R"({"model": "a"})"));
  for (const std::string hostile :
       {"</script><script>alert(1)</script>", "<!--<script>", "<img src=x onerror=alert(1)>",
        "{{script}}", "&lt;b>", "]]>"}) {
    std::string quoted;
    for (const char c : hostile)
      quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    const std::string text = html(page_of(hostile, R"({"model": ")" + quoted + "\"}"));
    EXPECT_EQ(count(text, "<script"), count(plain, "<script")) << hostile;
    EXPECT_EQ(count(text, "</script"), count(plain, "</script")) << hostile;
    EXPECT_EQ(count(text, "<img"), 0U) << hostile;
    EXPECT_EQ(count(text, "<!--"), count(plain, "<!--")) << hostile;
  }
}

TEST(Page, WritesWordsAsAShellReadsThem) {
  EXPECT_EQ(shell_line({"predict", "--ranks=8", "a,b/c.yaml"}), "predict --ranks=8 a,b/c.yaml");
  EXPECT_EQ(shell_line({"100 Gbit/s", "", "it's", "$(x)"}), R"('100 Gbit/s' '' 'it'\''s' '$(x)')");
}

}  // namespace
}  // namespace paceline::page
