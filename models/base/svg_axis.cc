// Tests: tests/models/svg_axis_test.cc.
#include "models/base/svg_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/base/xml_text.h"

namespace paceline {
namespace {

constexpr double digits[] = {1, 2, 5};

double power_of_ten_below(double value) {
  return std::pow(10, std::floor(std::log10(value)));
}

}  // namespace

double LogAxis::at(double value) const {
  const double share = std::log(std::max(value, 1e-300) / least) / std::log(most / least);
  return begin + std::clamp(share, 0.0, 1.0) * (end - begin);
}

std::vector<double> marks_of_decades(double least, double most) {
  std::vector<double> marks;
  const bool is_long = most / least > 1e3;
  for (double power = power_of_ten_below(least); power <= most; power *= 10) {
    for (const double digit : digits) {
      const double value = power * digit;
      if ((!is_long || digit == 1) && value >= least && value <= most) marks.push_back(value);
    }
  }
  return marks;
}

double mark_distance(double length, int marks) {
  const double shortest = length / marks;
  const double power = power_of_ten_below(shortest);
  for (const double digit : digits) {
    if (digit * power >= shortest) return digit * power;
  }
  return 10 * power;
}

std::string AxisFrame::mark_across(double x, std::string_view text) const {
  return fmt::format(
      "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>\n"
      "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4}</text>\n",
      x, top, bottom, bottom + 17, xml_text(text));
}

std::string AxisFrame::mark_along(double y, std::string_view text) const {
  return fmt::format(
      "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n"
      "<text class=\"tick\" x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
      left, right, y, left - 7, y + 4, xml_text(text));
}

std::string AxisFrame::border(std::string_view x_name, std::string_view y_name,
                              double name_at) const {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" "
      "stroke=\"#444\"/>\n"
      "<text class=\"axis\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n"
      "<text class=\"axis\" transform=\"translate({:g} {:.1f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>\n",
      left, top, right - left, bottom - top, (left + right) / 2, bottom + 38, xml_text(x_name),
      name_at, (top + bottom) / 2, xml_text(y_name));
}

}  // namespace paceline
