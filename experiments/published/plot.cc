// Tests: tests/cli/reproduce_test.py.
#include "experiments/published/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "experiments/published/summary.h"
#include "models/base/xml_text.h"

namespace paceline::experiments {
namespace {

// Sizes of the picture and of the frame within it, in pixels.
constexpr double left = 86;
constexpr double right = 686;
constexpr double top = 52;
constexpr double bottom = 652;
constexpr double legend = 706;
constexpr double width = 1010;
constexpr double line_height = 17;

using Buffer = fmt::memory_buffer;

// A decimal logarithmic axis, on which whole powers of ten have pixels `begin` to `end`.
struct Axis {
  double least = 1;
  double most = 10;

  [[nodiscard]] double share(double value) const {
    return std::clamp(std::log10(value / least) / std::log10(most / least), 0.0, 1.0);
  }
  [[nodiscard]] double x(double value) const { return left + share(value) * (right - left); }
  [[nodiscard]] double y(double value) const { return bottom - share(value) * (bottom - top); }
};

bool is_drawn(const Row& row) {
  return row.provenance == Provenance::predicted && row.published > 0 && row.ours > 0;
}

// Both axes have the same range, so that the line of equal values is the diagonal.
Axis axis_of(std::span<const Reproduction> sources) {
  double least = 1e300;
  double most = 0;
  for (const Reproduction& source : sources) {
    for (const Row& row : source.rows) {
      if (!is_drawn(row)) continue;
      least = std::min({least, row.published, row.ours});
      most = std::max({most, row.published, row.ours});
    }
  }
  if (most == 0) return {};
  return {std::pow(10, std::floor(std::log10(least))),
          std::pow(10, std::floor(std::log10(most)) + 1)};
}

// Hues are a golden angle apart, so that neighbours in the legend differ.
std::string colour(std::size_t source) {
  constexpr double golden_angle = 137.508;
  return fmt::format("hsl({:.0f},70%,{}%)",
                     std::fmod(golden_angle * static_cast<double>(source), 360),
                     source % 2 == 0 ? 38 : 48);
}

void write_frame(Buffer& out, const Axis& axis) {
  auto to = std::back_inserter(out);
  for (double decade = axis.least; decade <= axis.most * 1.001; decade *= 10) {
    fmt::format_to(
        to,
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n"
        "<line class=\"grid\" x1=\"{3}\" y1=\"{5:.1f}\" x2=\"{4}\" y2=\"{5:.1f}\"/>\n"
        "<text class=\"tick\" x=\"{0:.1f}\" y=\"{6}\" text-anchor=\"middle\">{8:g}</text>\n"
        "<text class=\"tick\" x=\"{7}\" y=\"{9:.1f}\" text-anchor=\"end\">{8:g}</text>\n",
        axis.x(decade), top, bottom, left, right, axis.y(decade), bottom + 17, left - 7, decade,
        axis.y(decade) + 4);
  }
  for (const auto& [factor, kind] : {std::pair{1.0, "equal"}, {1.1, "off"}, {1 / 1.1, "off"}}) {
    const double from = axis.least * std::max(1.0, 1 / factor);
    const double until = axis.most / std::max(1.0, factor);
    fmt::format_to(
        to, "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind,
        axis.x(from), axis.y(from * factor), axis.x(until), axis.y(until * factor));
  }
  fmt::format_to(
      to,
      "<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" fill=\"none\" "
      "stroke=\"#444\"/>\n"
      "<text class=\"axis\" x=\"{4}\" y=\"{5}\" text-anchor=\"middle\">published, in the "
      "row's unit</text>\n"
      "<text class=\"axis\" transform=\"translate(20 {6}) rotate(-90)\" "
      "text-anchor=\"middle\">predicted</text>\n",
      left, top, right - left, bottom - top, (left + right) / 2, bottom + 38, (top + bottom) / 2);
}

void write_row(Buffer& out, const Row& row, const Axis& axis) {
  auto to = std::back_inserter(out);
  const double x = axis.x(row.published);
  const double y = axis.y(row.ours);
  if (row.low < row.high)
    fmt::format_to(to, "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>", x,
                   axis.y(std::max(row.low, axis.least)), axis.y(row.high));
  const char* const fill = row.is_inside() ? "" : " fill=\"#fff\"";
  if (row.kind == RowKind::training) {
    fmt::format_to(to, "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"{}>", x, y, fill);
  } else {
    fmt::format_to(to, "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"5\" height=\"5\"{}>", x - 2.5,
                   y - 2.5, fill);
  }
  fmt::format_to(to, "<title>{}</title></{}>\n",
                 xml_text(fmt::format("{} {}: published {:.4g} {}, predicted {:.4g}", row.id,
                                      row.what, row.published, row.unit, row.ours)),
                 row.kind == RowKind::training ? "circle" : "rect");
}

void write_source(Buffer& out, const Reproduction& source, std::size_t index, std::size_t line,
                  const Axis& axis) {
  auto to = std::back_inserter(out);
  const Summary summary = summary_of(source.rows, is_drawn);
  const double y = top + 10 + line_height * static_cast<double>(line);
  fmt::format_to(to,
                 "<g fill=\"{0}\" stroke=\"{0}\">\n<circle cx=\"{1}\" cy=\"{2:.1f}\" r=\"4\"/>\n",
                 colour(index), legend + 6, y - 4);
  for (const Row& row : source.rows) {
    if (is_drawn(row)) write_row(out, row, axis);
  }
  fmt::format_to(
      to, "</g>\n<text class=\"tick\" x=\"{}\" y=\"{:.1f}\">{}</text>\n", legend + 18, y,
      xml_text(fmt::format("{}: {}, median {:.1f} %, {:.0f} % inside", source.name, summary.rows,
                           100 * summary.median, 100.0 * summary.inside / summary.rows)));
}

}  // namespace

std::string published_svg(std::span<const Reproduction> sources) {
  const Axis axis = axis_of(sources);
  std::vector<std::size_t> drawn;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (std::any_of(sources[i].rows.begin(), sources[i].rows.end(), is_drawn)) drawn.push_back(i);
  }
  const double height =
      std::max(bottom + 54, top + line_height * static_cast<double>(drawn.size() + 2));
  Buffer out;
  fmt::format_to(
      std::back_inserter(out),
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\">\n"
      "<style>.grid{{stroke:#ddd}}.tick{{font-size:11px;fill:#333}}"
      ".axis{{font-size:12px;fill:#111}}.title{{font-size:15px;fill:#111}}"
      ".equal{{stroke:#666}}.off{{stroke:#999;stroke-dasharray:4 3}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text class=\"title\" x=\"{2}\" y=\"30\">Predicted over published, with intervals; "
      "full points have the published value inside</text>\n",
      width, height, left);
  write_frame(out, axis);
  for (std::size_t line = 0; line < drawn.size(); ++line)
    write_source(out, sources[drawn[line]], drawn[line], line, axis);
  fmt::format_to(std::back_inserter(out), "</svg>\n");
  return fmt::to_string(out);
}

}  // namespace paceline::experiments
