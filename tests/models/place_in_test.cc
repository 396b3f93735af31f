#include "models/base/place_in.h"

#include <gtest/gtest.h>

#include <utility>

namespace paceline {
namespace {

std::pair<int, int> at(std::string_view text, std::size_t offset) {
  const InputPlace place = place_in("f", text, offset);
  EXPECT_EQ(place.file, "f");
  return {place.line, place.column};
}

TEST(PlaceIn, CountsFromOne) {
  EXPECT_EQ(at("", 0), std::pair(1, 1));
  EXPECT_EQ(at("abc", 0), std::pair(1, 1));
  EXPECT_EQ(at("abc", 2), std::pair(1, 3));
}

TEST(PlaceIn, ALineEndIsOnTheLineThatItEnds) {
  EXPECT_EQ(at("ab\ncd", 2), std::pair(1, 3));
  EXPECT_EQ(at("ab\ncd", 3), std::pair(2, 1));
  EXPECT_EQ(at("ab\n\ncd", 5), std::pair(3, 2));
}

TEST(PlaceIn, BehindTheTextIsItsEnd) {
  EXPECT_EQ(at("ab\ncd", 100), std::pair(2, 3));
  EXPECT_EQ(at("ab\n", 100), std::pair(2, 1));
}

}  // namespace
}  // namespace paceline
