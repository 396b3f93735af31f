// Axes of the pictures that Paceline draws as SVG: where a value stands, which values are marked, and
// the lines and texts of the marks. The picture's style sheet has the classes `grid`, `tick` and
// `axis`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// A logarithmic axis from `least` to `most`, both positive; `begin` and `end` are pixels. What is
// beyond an end stands at that end.
struct LogAxis {
  double least;
  double most;
  double begin;
  double end;

  [[nodiscard]] double at(double value) const;
};

// 1, 2 and 5 of each power of ten from `least` to `most`, both positive; the powers alone where the
// axis spans more than three of them.
[[nodiscard]] std::vector<double> marks_of_decades(double least, double most);

// The distance of at most `marks` equal parts of an axis from 0 to `length`: 1, 2 or 5 times a power
// of ten.
[[nodiscard]] double mark_distance(double length, int marks);

// The frame that the marks and names of two axes stand around, in pixels.
struct AxisFrame {
  double left;
  double right;
  double top;
  double bottom;

  // A line across the frame at `x`, and its text below.
  [[nodiscard]] std::string mark_across(double x, std::string_view text) const;
  // A line along the frame at `y`, and its text to the left.
  [[nodiscard]] std::string mark_along(double y, std::string_view text) const;
  // The border of the frame, with the name of each axis; `name_at` is where the upright one stands.
  [[nodiscard]] std::string border(std::string_view x_name, std::string_view y_name,
                                   double name_at) const;
};

}  // namespace paceline
