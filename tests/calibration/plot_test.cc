// The structure of the picture: what is drawn of what, and that it is XML.
#include "calibration/fit/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <pugixml.hpp>
#include <string>

namespace paceline::calibration {
namespace {

using ::testing::HasSubstr;

std::vector<Sample> two_protocols() {
  std::vector<Sample> samples;
  for (int i = 0; i < 20; ++i) {
    const double bytes = std::ldexp(8.0, i);
    const double time = bytes < 16384 ? 5e-6 + bytes * 1e-9 : 60e-6 + bytes * 0.2e-9;
    samples.push_back({Bytes{bytes}, Seconds{time}});
    samples.push_back({Bytes{bytes}, Seconds{time * 1.02}});
  }
  return samples;
}

std::size_t count(const pugi::xml_node& svg, const char* element, const std::string& kind) {
  std::size_t found = 0;
  for (const pugi::xml_node& node : svg.children(element))
    found += node.attribute("class").value() == kind ? 1 : 0;
  return found;
}

std::string all_texts(const pugi::xml_node& svg) {
  std::string texts;
  for (const pugi::xml_node& node : svg.children("text"))
    texts += std::string(node.child_value()) + "\n";
  return texts;
}

TEST(FitPlot, DrawsEverySampleEveryPieceAndEveryBreakpoint) {
  const std::vector<Sample> samples = two_protocols();
  const Fit fit = fit_piecewise(samples);
  ASSERT_EQ(fit.pieces.size(), 2u);
  const std::string text = fit_svg(samples, fit, {.title = "lab & <co>", .origin = "by <hand>"});
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(text.c_str()));
  const pugi::xml_node svg = document.child("svg");
  // One circle is in the legend.
  EXPECT_EQ(count(svg, "circle", "sample"), samples.size() + 1);
  EXPECT_EQ(count(svg, "circle", "outlier"), 0u);
  EXPECT_EQ(count(svg, "polyline", "fit"), 2u);
  EXPECT_EQ(count(svg, "line", "break"), 1u);
  EXPECT_EQ(count(svg, "polygon", "band"), 2u);
  const std::string texts = all_texts(svg);
  EXPECT_THAT(texts, HasSubstr("lab & <co>"));
  EXPECT_THAT(texts, HasSubstr("by <hand>"));
  for (const char* word : {"message size (bytes)\n", "time\n", "1 us\n", "1 ms\n", "1 KiB\n",
                           "measured\n", "alpha + n beta, 2 pieces\n", "90 % interval; residual "})
    EXPECT_THAT(texts, HasSubstr(word));
  EXPECT_THAT(texts, HasSubstr("the fit jumps by"));
}

TEST(FitPlot, PointsAreInTheFrameAndLargerIsFurtherRightAndHigher) {
  const std::vector<Sample> samples = two_protocols();
  pugi::xml_document document;
  ASSERT_TRUE(
      document.load_string(fit_svg(samples, fit_piecewise(samples), {.title = "t"}).c_str()));
  double x = 0;
  double y = 1e9;
  std::size_t seen = 0;
  for (const pugi::xml_node& node : document.child("svg").children("circle")) {
    if (seen++ == samples.size()) break;  // the legend's
    const double cx = node.attribute("cx").as_double();
    const double cy = node.attribute("cy").as_double();
    EXPECT_GE(cx, x);
    // The later of two samples of a size is the longer one. Pixels have one decimal.
    if (seen % 2 == 1) EXPECT_LE(cy, y + 1.0);
    if (seen % 2 == 0) EXPECT_LT(cy, y);
    EXPECT_GT(cx, 86);
    EXPECT_LT(cx, 724);
    EXPECT_GT(cy, 52);
    EXPECT_LT(cy, 420);
    x = cx;
    y = cy;
  }
}

TEST(FitPlot, OutliersAreMarked) {
  std::vector<Sample> samples;
  for (int i = 0; i < 20; ++i)
    samples.push_back({Bytes{std::ldexp(8.0, i)},
                       Seconds{(5e-6 + std::ldexp(8.0, i) * 1e-9) * (i == 7 ? 5 : 1)}});
  pugi::xml_document document;
  ASSERT_TRUE(
      document.load_string(fit_svg(samples, fit_piecewise(samples), {.title = "t"}).c_str()));
  EXPECT_EQ(count(document.child("svg"), "circle", "outlier"), 2u);
  EXPECT_THAT(all_texts(document.child("svg")), HasSubstr("outlier, left out"));
}

TEST(FitPlot, IsTheSameEachTime) {
  const std::vector<Sample> samples = two_protocols();
  const Fit fit = fit_piecewise(samples);
  EXPECT_EQ(fit_svg(samples, fit, {.title = "t"}), fit_svg(samples, fit, {.title = "t"}));
}

TEST(FitPlot, OneSizeAndNoSizeHaveAPicture) {
  for (const double bytes : {0.0, 1.0, 4096.0}) {
    const std::vector<Sample> samples = {{Bytes{bytes}, Seconds{3e-6}}};
    const std::string text = fit_svg(samples, fit_piecewise(samples), {.title = "t"});
    EXPECT_THAT(text, HasSubstr("</svg>\n"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("nan")));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("inf")));
  }
}

}  // namespace
}  // namespace paceline::calibration
