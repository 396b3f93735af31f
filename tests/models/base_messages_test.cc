// Messages stay one line whatever they quote; names; limits.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/common_words.h"
#include "models/base/error.h"
#include "models/base/figure.h"
#include "models/base/first_difference.h"
#include "models/base/limits.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"

namespace paceline {
namespace {

bool is_one_line(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

TEST(InQuotes, ShowsTextAsItIsWhereItIsPrintable) {
  EXPECT_EQ(in_quotes("resnet50"), "'resnet50'");
  EXPECT_EQ(in_quotes(""), "''");
  EXPECT_EQ(in_quotes("µs 中 😀"), "'µs 中 😀'");
}

TEST(InQuotes, HidesControlsAndWhatIsNoUtf8) {
  EXPECT_EQ(in_quotes("a\nb\tc\x1b[31m\x7f"), "'a?b?c?[31m?'");
  EXPECT_EQ(in_quotes(std::string("a\0b", 3)), "'a?b'");
  EXPECT_EQ(in_quotes("\x80\xff"), "'?\?'");
  EXPECT_EQ(in_quotes("\xc2\x9b"
                      "31m"),
            "'??31m'");                       // the 8-bit escape of terminals
  EXPECT_EQ(in_quotes("\xe4\xb8"), "'?\?'");  // the character ends too soon
}

TEST(InQuotes, CutsBetweenCharacters) {
  EXPECT_EQ(in_quotes(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(in_quotes(std::string(61, 'x')), "'" + std::string(60, 'x') + "...'");
  EXPECT_EQ(in_quotes(std::string(59, 'x') + "中中"), "'" + std::string(59, 'x') + "...'");
}

RC_GTEST_PROP(InQuotes, IsShortAndOneLine, (const std::string& text)) {
  const std::string shown = in_quotes(text);
  RC_ASSERT(shown.size() <= 65u);
  RC_ASSERT(is_one_line(shown));
}

TEST(InputErrorText, IsOneLineWhateverItQuotes) {
  const InputError error({"a\nb.yaml", 1, 2}, "no\nthing", "do\rsomething\x1b");
  EXPECT_STREQ(error.what(), "a?b.yaml:1:2: no?thing; do?something?");
  EXPECT_EQ(error.problem(), "no?thing");
  EXPECT_EQ(error.remedy(), "do?something?");
  EXPECT_STREQ(InputError({"a.yaml", 3, 0}, "wrong", "").what(), "a.yaml:3: wrong");
  EXPECT_STREQ(InputError({"a.yaml", 0, 4}, "wrong", "").what(), "a.yaml: wrong");
}

TEST(ErrorKinds, SayWhatFailedAndWhy) {
  EXPECT_STREQ(RunError("write out.json", "disk full").what(), "cannot write out.json: disk full");
  EXPECT_DEATH(PACELINE_ASSERT(1 == 2, "one is two"),
               "broken invariant at .*: one is two \\(1 == 2\\)");
}

TEST(UnknownName, SuggestsOrListsWhatIsKnown) {
  const std::vector<std::string> known = {"resnet50", "vgg16"};
  EXPECT_STREQ(unknown_name("network", "resnet5", known).what(),
               "unknown network 'resnet5'; did you mean 'resnet50'?");
  EXPECT_STREQ(unknown_name("network", "bert", known).what(),
               "unknown network 'bert'; known: resnet50, vgg16");
  EXPECT_STREQ(unknown_name("network", "a\nb", known).what(),
               "unknown network 'a?b'; known: resnet50, vgg16");
}

TEST(TableOfNames, IsReadInBothDirections) {
  enum class Colour { red, green, blue };
  constexpr std::array<std::pair<Colour, std::string_view>, 2> colours = {
      {{Colour::red, "red"}, {Colour::green, "green"}}};
  EXPECT_EQ(name_in(colours, Colour::green), "green");
  EXPECT_EQ(name_in(colours, Colour::blue), "unknown");
  EXPECT_EQ(value_named(colours, "colour", "green"), Colour::green);
  try {
    (void)value_named(colours, "colour", "mauve");
    FAIL() << "no colour of the table has that name";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "unknown colour 'mauve'; known: red, green");
  }
}

TEST(NearestName, CountsASwapOfNeighboursOnceAndTakesTheFirstOfTies) {
  EXPECT_EQ(nearest_name("ab", {"ba"}), std::nullopt)
      << "one of two characters is more than a third";
  EXPECT_EQ(nearest_name("nvlikn", {"nvlink"}), "nvlink");
  EXPECT_EQ(nearest_name("abd", {"abc", "abe"}), "abc");
  EXPECT_EQ(nearest_name("abe", {"abc", "abe"}), "abe");
  EXPECT_EQ(nearest_name("", {"a"}), std::nullopt);
  EXPECT_EQ(nearest_name("x", {}), std::nullopt);
}

RC_GTEST_PROP(NearestName, FindsAKnownNameItself, (const std::vector<std::string>& known)) {
  for (const std::string& candidate : known) {
    if (candidate.size() > 100) continue;
    const auto nearest = nearest_name(candidate, known);
    RC_ASSERT(nearest.has_value());
    RC_ASSERT(nearest->size() == candidate.size());  // equal except for case
  }
}

TEST(Provenance, UnknownNamesListTheKnown) {
  try {
    (void)provenance_from_name("guessed");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "unknown provenance 'guessed'; known: measured, calibrated, predicted, datasheet, "
                 "published, assumed");
  }
}

// A value that a message about limits proposes is within the limits.
TEST(Limits, TheirEndsReadBackWithinThem) {
  EXPECT_TRUE(within_limits(parse_seconds(to_text(Limits<Seconds>::most))));
  EXPECT_TRUE(within_limits(parse_bytes(to_text(Limits<Bytes>::least))));
  EXPECT_TRUE(within_limits(parse_bytes(to_text(Limits<Bytes>::most))));
  EXPECT_TRUE(within_limits(parse_bandwidth(to_text(Limits<BytesPerSecond>::least))));
  EXPECT_TRUE(within_limits(parse_bandwidth(to_text(Limits<BytesPerSecond>::most))));
  EXPECT_TRUE(within_limits(parse_flop_rate(to_text(Limits<FlopsPerSecond>::least))));
  EXPECT_TRUE(within_limits(parse_flop_rate(to_text(Limits<FlopsPerSecond>::most))));
  EXPECT_TRUE(within_limits(parse_rate(to_text(Limits<PerSecond>::least))));
  EXPECT_TRUE(within_limits(parse_rate(to_text(Limits<PerSecond>::most))));
}

TEST(FirstDifference, IsTheFirstLineThatDiffers) {
  using Lines = std::pair<std::string, std::string>;
  EXPECT_EQ(first_difference("a: 1\nb: 2\n", "a: 1\nb: 2\n"), Lines());
  EXPECT_EQ(first_difference("a: 1\nb: 2\nc: 3\n", "a: 1\nb: 4\nc: 5\n"), Lines("b: 2", "b: 4"));
  EXPECT_EQ(first_difference("a: 1\n", "a: 1\nb: 2\n"), Lines("", "b: 2"));
  EXPECT_EQ(first_difference("", "a: 1"), Lines("", "a: 1"));
}

// A word of the table is answered with what to do; near misses of known names are still suggested.
TEST(Messages, CommonWordsOfTheFieldSayWhatToDo) {
  EXPECT_EQ(std::string(unknown_name("strategy", "zero3", {"ring"}).what()),
            "unknown strategy 'zero3'; write fsdp, which is ZeRO-3");
  EXPECT_EQ(common_word_remedy("strategy", "zer"), "");
  EXPECT_EQ(common_word_remedy("network", "zero3"), "");
  EXPECT_EQ(common_word_remedy("command", "version"), "write paceline --version");
  EXPECT_EQ(std::string(unknown_name("strategy", "rong", {"ring"}).what()),
            "unknown strategy 'rong'; did you mean 'ring'?");
}

}  // namespace
}  // namespace paceline
