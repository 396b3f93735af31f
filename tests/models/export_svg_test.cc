#include "models/collective/export/svg.h"

#include <gtest/gtest.h>

#include <string>

#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/collective/combinators.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

bool holds(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

// The group of lines with one kind of head.
std::string arrows_with(const std::string& text, const std::string& head) {
  const std::size_t begin = text.find("marker-end=\"url(#" + head + ")\">");
  return text.substr(begin, text.find("</g>", begin) - begin);
}

// Two columns of eight arrows for 14 steps.
TEST(ExportSvg, AlikeStepsAreDrawnOnce) {
  const std::string text = svg(ring_all_reduce(8), "ring", "all-reduce");
  EXPECT_TRUE(holds(text, ">1 to 7</text>"));
  EXPECT_TRUE(holds(text, ">8 to 14</text>"));
  EXPECT_EQ(count(text, ">\u00d7 7</text>"), 2);
  EXPECT_EQ(count(text, ">n/8</text>"), 2);
  EXPECT_EQ(count(arrows_with(text, "added"), " L "), 8);
  EXPECT_EQ(count(arrows_with(text, "put"), " L "), 8);
  EXPECT_TRUE(holds(text, "m steps with the same partners"));
  EXPECT_TRUE(holds(text, "all-reduce, p = 8 ranks, 14 steps, n bytes in 8 chunks"));
}

// Six ranks: two fold into their neighbours, four halve and double, two are told.
TEST(ExportSvg, AFoldByHand) {
  const std::string text = svg(halving_doubling_all_reduce(6), "halving-doubling", "all-reduce");
  EXPECT_EQ(count(arrows_with(text, "added"), " L "), 2 + 4 + 4);
  EXPECT_EQ(count(arrows_with(text, "put"), " L "), 4 + 4 + 2);
  for (int step = 1; step <= 6; ++step)
    EXPECT_TRUE(holds(text, ">" + std::to_string(step) + "</text>"));
  EXPECT_EQ(count(text, ">n</text>"), 2);
  EXPECT_FALSE(holds(text, "drawn once"));
  EXPECT_FALSE(holds(text, "pale"));
}

TEST(ExportSvg, SizesThatDifferAreARange) {
  const std::string text = svg(binary_blocks_all_reduce(7), "binary-blocks", "all-reduce");
  EXPECT_TRUE(holds(text, ">n/4 to n/2</text>")) << text;
}

// 12 x 11 arrows in each of two steps: one rank's are drawn in full.
TEST(ExportSvg, OfADenseStepOneRankIsDrawnInFull) {
  const std::string text = svg(parameter_server(12, 12, 0), "direct-exchange", "all-reduce");
  EXPECT_EQ(count(arrows_with(text, "added"), " L "), 11);
  EXPECT_EQ(count(arrows_with(text, "put"), " L "), 11);
  EXPECT_EQ(count(text, " L "), 2 * 12 * 11 + 4);  // and two heads of two lines
  EXPECT_TRUE(holds(text, "pale: messages of the other ranks"));
}

TEST(ExportSvg, WithoutReductionTheLegendHasNone) {
  const std::string text = svg(ring_all_gather(4), "all-gather", "all-gather");
  EXPECT_FALSE(holds(text, "added to what"));
  EXPECT_TRUE(holds(text, "replaces what"));
}

TEST(ExportSvg, EverythingOfTheCatalogueIsDrawnUpToSixtyFourRanks) {
  for (const CollectiveAlgorithm& algorithm : collective_catalogue()) {
    for (int p = 2; p <= 64; ++p) {
      std::string text;
      const std::string refused = test::error_of([&] {
        text = svg(algorithm.build({.ranks = p}), algorithm.name, name(algorithm.collective));
        return text;
      });
      if (refused == "no error") {
        EXPECT_TRUE(text.ends_with("</svg>\n"));
        EXPECT_EQ(count(text, "<g "), count(text, "</g>")) << algorithm.name << " p=" << p;
      } else {  // a chain by itself, in many segments
        EXPECT_TRUE(algorithm.name == "hierarchical" || algorithm.name.starts_with("chain-"))
            << refused;
        EXPECT_TRUE(holds(refused, "more than 64 columns")) << refused;
      }
    }
  }
}

TEST(ExportSvg, NamesAreEscaped) {
  const std::string text = svg(ring_all_reduce(2), "<&\"", "all-reduce");
  EXPECT_TRUE(holds(text, "<title>&lt;&amp;&quot;: "));
  EXPECT_TRUE(holds(text, "font-weight=\"bold\">&lt;&amp;&quot;</text>"));
}

TEST(ExportSvg, WhatIsNotLegibleIsRefused) {
  const auto refusal = [](const Schedule& schedule) {
    return test::error_of([&] { return svg(schedule, "x", "all-reduce"); });
  };
  EXPECT_EQ(refusal(ring_all_reduce(1)), "one rank exchanges nothing; give --ranks 2 or more");
  EXPECT_EQ(refusal(ring_all_reduce(65)), "a picture of 65 ranks is not legible; draw at most 64");
  EXPECT_EQ(refusal(hierarchical_all_reduce(64, 64)),
            "the picture would have more than 64 columns of steps that differ; draw fewer ranks or "
            "segments");
}

}  // namespace
}  // namespace paceline::models
