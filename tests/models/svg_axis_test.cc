// Where values stand on an axis, and which are marked.
#include "models/base/svg_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace paceline {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A positive number over many powers of ten.
double drawn_positive() {
  return std::pow(10, *rc::gen::inRange(-900, 900) / 100.0);
}

TEST(SvgAxis, EndsStandAtTheEndsAndTheGeometricMeanInTheMiddle) {
  const LogAxis axis{1, 100, 500, 100};
  EXPECT_DOUBLE_EQ(axis.at(1), 500);
  EXPECT_DOUBLE_EQ(axis.at(10), 300);
  EXPECT_DOUBLE_EQ(axis.at(100), 100);
  EXPECT_DOUBLE_EQ(axis.at(0), 500);
  EXPECT_DOUBLE_EQ(axis.at(1e9), 100);
}

RC_GTEST_PROP(SvgAxis, AValueIsWithinTheAxisAndInOrder, ()) {
  const double least = drawn_positive();
  const LogAxis axis{least, least * (1 + drawn_positive()), 20, 700};
  const double one = drawn_positive();
  const double other = one * 1.01;
  RC_ASSERT(axis.at(one) >= 20 && axis.at(one) <= 700);
  RC_ASSERT(axis.at(other) >= axis.at(one));
}

TEST(SvgAxis, MarksAreOneTwoAndFiveOfEachDecade) {
  EXPECT_THAT(marks_of_decades(1.5, 60), ElementsAre(2, 5, 10, 20, 50));
  EXPECT_THAT(marks_of_decades(0.5, 5000),
              ElementsAre(DoubleEq(1), DoubleEq(10), DoubleEq(100), DoubleEq(1000)));
}

RC_GTEST_PROP(SvgAxis, MarksAreWithinTheAxisAndNotTooMany, ()) {
  const double least = drawn_positive();
  const double most = least * (1 + drawn_positive());
  const std::vector<double> marks = marks_of_decades(least, most);
  for (const double mark : marks) RC_ASSERT(mark >= least && mark <= most);
  RC_ASSERT(std::is_sorted(marks.begin(), marks.end()));
  RC_ASSERT(marks.size() <= 20);
}

RC_GTEST_PROP(SvgAxis, NoMoreMarksThanAskedFor, ()) {
  const double length = drawn_positive();
  const int marks = *rc::gen::inRange(1, 40);
  const double distance = mark_distance(length, marks);
  RC_ASSERT(length / distance <= marks * (1 + 1e-9));
  // The next shorter round distance would make too many: no two neighbours differ by more than 2.5.
  RC_ASSERT(length / distance >= marks / 2.5 * (1 - 1e-9));
}

TEST(SvgAxis, TextsOfMarksAreEscaped) {
  const AxisFrame frame{80, 600, 50, 400};
  EXPECT_THAT(frame.mark_across(100, "<1 ms"), HasSubstr("&lt;1 ms"));
  EXPECT_THAT(frame.mark_along(100, "a & b"), HasSubstr("a &amp; b"));
  EXPECT_THAT(frame.border("<x>", "<y>", 20), HasSubstr("&lt;x&gt;"));
}

}  // namespace
}  // namespace paceline
