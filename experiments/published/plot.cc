// Tests: tests/cli/reproduce_test.py.
#include "experiments/published/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <vector>

#include "experiments/published/summary.h"
#include "models/base/svg_axis.h"
#include "models/base/xml_text.h"

namespace paceline::experiments {
namespace {

// Sizes of the picture and of the frame within it, in pixels.
constexpr double left = 236;
constexpr double right = 836;
constexpr double top = 76;
constexpr double strip = 30;
constexpr double width = 1090;

// The ratios at the ends of the axis. What is beyond stands at an end.
constexpr LogAxis ratios{0.25, 4, left, right};
constexpr std::array ticks = {0.25, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 2.0, 4.0};

using Buffer = fmt::memory_buffer;

bool is_drawn(const Row& row) {
  return row.provenance == Provenance::predicted && row.published > 0 && row.ours > 0;
}

// The speed that a value of ours stands for, over the published one.
double ratio_of(const Row& row, double ours) {
  return row.is_time ? row.published / ours : ours / row.published;
}

// The rows of one source that are of one kind.
struct Strip {
  std::string name;
  std::vector<const Row*> rows;
  Summary summary;
};

std::vector<Strip> strips_of(std::span<const Reproduction> sources) {
  std::vector<Strip> strips;
  for (const Reproduction& source : sources) {
    for (const RowClass& kind : row_classes()) {
      Strip one{source.name + std::string(kind.suffix), {}, summary_of(source.rows, kind.counts)};
      for (const Row& row : source.rows) {
        if (is_drawn(row) && kind.counts(row)) one.rows.push_back(&row);
      }
      if (!one.rows.empty()) strips.push_back(std::move(one));
    }
  }
  return strips;
}

// Where the n-th of a strip's points stands across it, from 0 to 1: the van der Corput sequence in
// base 2, whose neighbours are far apart.
double across(std::size_t n) {
  double at = 0;
  for (double part = 0.5; n > 0; n /= 2, part /= 2) at += part * static_cast<double>(n % 2);
  return at;
}

void write_frame(Buffer& out, double bottom) {
  auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "<rect class=\"near\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>\n",
                 ratios.at(0.9), top, ratios.at(1.1) - ratios.at(0.9), bottom - top);
  for (const double tick : ticks)
    fmt::format_to(
        to,
        "<line class=\"{4}\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n"
        "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{5:g}</text>\n",
        ratios.at(tick), top, bottom, top - 8, tick == 1 ? "equal" : "grid", tick);
}

void write_row(Buffer& out, const Row& row, double y) {
  auto to = std::back_inserter(out);
  const std::string kind = row.is_inside() ? "inside" : "outside";
  if (row.low < row.high)
    fmt::format_to(to,
                   "<line class=\"bar {0}\" x1=\"{1:.1f}\" y1=\"{3:.1f}\" x2=\"{2:.1f}\" "
                   "y2=\"{3:.1f}\"/>",
                   kind, ratios.at(ratio_of(row, row.low)), ratios.at(ratio_of(row, row.high)), y);
  fmt::format_to(
      to, "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\"><title>{}</title></circle>\n",
      kind, ratios.at(ratio_of(row, row.ours)), y,
      xml_text(fmt::format("{} {}: published {:.4g} {}, predicted {:.4g} ({:.4g} to {:.4g})",
                           row.id, row.what, row.published, row.unit, row.ours, row.low,
                           row.high)));
}

void write_strip(Buffer& out, const Strip& one, double y) {
  auto to = std::back_inserter(out);
  const Summary& summary = one.summary;
  fmt::format_to(
      to,
      "<line class=\"grid\" x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\"/>\n"
      "<text class=\"name\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n"
      "<text class=\"tick\" x=\"{}\" y=\"{:.1f}\">{}</text>\n",
      left, y + strip, right, y + strip, left - 10, y + 0.5 * strip + 4, xml_text(one.name),
      right + 10, y + 0.5 * strip + 4,
      xml_text(fmt::format("{} rows, median {:.1f} %, {:.0f} % inside", summary.rows,
                           100 * summary.median, 100.0 * summary.inside / summary.rows)));
  for (std::size_t i = 0; i < one.rows.size(); ++i)
    write_row(out, *one.rows[i], y + 4 + (strip - 8) * across(i + 1));
  fmt::format_to(
      to, "<line class=\"bias\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>\n",
      ratios.at(1 + summary.bias), y + 2, y + strip - 2);
}

}  // namespace

std::string published_svg(std::span<const Reproduction> sources) {
  const std::vector<Strip> strips = strips_of(sources);
  const double bottom = top + strip * static_cast<double>(std::max<std::size_t>(1, strips.size()));
  Buffer out;
  fmt::format_to(
      std::back_inserter(out),
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\">\n"
      "<style>.grid{{stroke:#ddd}}.equal{{stroke:#333}}.near{{fill:#f0f3f0}}"
      ".tick{{font-size:11px;fill:#333}}.name{{font-size:12px;fill:#111}}"
      ".title{{font-size:15px;fill:#111}}.bias{{stroke:#111;stroke-width:2}}"
      "circle.inside{{fill:#2166ac}}circle.outside{{fill:#fff;stroke:#b2182b;stroke-width:1.2}}"
      ".bar{{stroke-width:1;opacity:.3}}.bar.inside{{stroke:#2166ac}}.bar.outside{{stroke:#b2182b}}"
      "</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text class=\"title\" x=\"20\" y=\"28\">Predicted speed over published speed, by "
      "source</text>\n"
      "<text class=\"tick\" x=\"20\" y=\"46\">a bar is the 90 % interval; full blue: the published "
      "value is inside, hollow red: it is not; black: the median of the source; grey: within 10 %; "
      "to the right of 1 the prediction is too fast</text>\n",
      width, bottom + 14);
  write_frame(out, bottom);
  for (std::size_t i = 0; i < strips.size(); ++i)
    write_strip(out, strips[i], top + strip * static_cast<double>(i));
  fmt::format_to(std::back_inserter(out), "</svg>\n");
  return fmt::to_string(out);
}

}  // namespace paceline::experiments
