// Tests: tests/calibration/plot_test.cc.
#include "calibration/fit/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "models/base/parse_units.h"
#include "models/base/svg_axis.h"
#include "models/base/xml_text.h"

namespace paceline::calibration {
namespace {

// Sizes of the picture and of the frame within it, in pixels.
constexpr double width = 760;
constexpr double left = 86;
constexpr double right = 724;
constexpr double top = 52;
constexpr double bottom = 420;
constexpr double line_height = 16;
constexpr std::string_view blue = "#1f5fa8";
constexpr std::string_view orange = "#d9661f";
constexpr std::string_view red = "#b3261e";

using Buffer = fmt::memory_buffer;

struct Frame {
  LogAxis bytes;
  LogAxis time;
};

Frame frame_of(std::span<const Sample> samples, const Fit& fit) {
  double least_bytes = 1e300;
  double most_bytes = 0;
  double least_s = 1e300;
  double most_s = 0;
  const auto hold = [&](double low, double high) {
    if (low > 0) least_s = std::min(least_s, low);
    most_s = std::max(most_s, high);
  };
  for (const Sample& sample : samples) {
    if (sample.bytes <= Bytes{0}) continue;
    least_bytes = std::min(least_bytes, sample.bytes.value());
    most_bytes = std::max(most_bytes, sample.bytes.value());
    hold(sample.time.value(), sample.time.value());
  }
  for (const FittedSize& size : fit.sizes) {
    if (size.bytes > Bytes{0}) hold(size.low.value(), size.high.value());
  }
  if (most_bytes == 0) {  // sizes of 0 only
    least_bytes = most_bytes = 1;
    hold(fit.sizes.front().measured.value(), fit.sizes.front().measured.value());
  }
  // There is a little room at the sides, and times go from one power of ten to another.
  return {{least_bytes / 1.5, most_bytes * 1.5, left, right},
          {std::pow(10, std::floor(std::log10(least_s))),
           std::pow(10, std::floor(std::log10(most_s)) + 1), bottom, top}};
}

void write_ticks(Buffer& out, const Frame& frame) {
  constexpr AxisFrame lines{left, right, top, bottom};
  // No more than ten sizes have a text: every power of 2, or of 4, or of 8, and so on.
  const double powers = std::log2(frame.bytes.most / frame.bytes.least);
  const int step = std::max(1, static_cast<int>(std::ceil(powers / 9)));
  const int first = static_cast<int>(std::ceil(std::log2(frame.bytes.least)));
  for (int power = (first + step - 1) / step * step; std::exp2(power) <= frame.bytes.most;
       power += step) {
    if (power >= 0)
      out.append(lines.mark_across(frame.bytes.at(std::exp2(power)),
                                   to_text_binary(Bytes{std::exp2(power)})));
  }
  for (double decade = frame.time.least; decade <= frame.time.most * 1.001; decade *= 10)
    out.append(lines.mark_along(frame.time.at(decade), to_text(Seconds{decade})));
  out.append(lines.border("message size (bytes)", "time", 20));
}

// The ends of a piece within the axis.
struct Span {
  double from;
  double to;
};

Span span_of(const Fit& fit, std::size_t piece, const LogAxis& bytes) {
  const double to = piece + 1 < fit.pieces.size() ? fit.pieces[piece + 1].from.value() : bytes.most;
  return {std::max(fit.pieces[piece].from.value(), bytes.least), to};
}

// Between the sizes of a piece: pieces need not meet.
void write_band(Buffer& out, const Fit& fit, std::size_t piece, const Frame& frame) {
  std::string upper;
  std::string lower;
  for (const FittedSize& size : fit.sizes) {
    const bool within = size.bytes > Bytes{0} && size.bytes >= fit.pieces[piece].from &&
                        (piece + 1 == fit.pieces.size() || size.bytes < fit.pieces[piece + 1].from);
    if (!within) continue;
    const double x = frame.bytes.at(size.bytes.value());
    upper += fmt::format("{:.1f},{:.1f} ", x, frame.time.at(size.high.value()));
    lower.insert(0, fmt::format(" {:.1f},{:.1f}", x,
                                frame.time.at(std::max(size.low.value(), frame.time.least))));
  }
  if (upper.empty()) return;
  fmt::format_to(std::back_inserter(out), "<polygon class=\"band\" points=\"{}{}\"/>\n", upper,
                 lower.substr(1));
}

void write_fit(Buffer& out, const Fit& fit, const Frame& frame) {
  auto to = std::back_inserter(out);
  for (std::size_t i = 0; i < fit.pieces.size(); ++i) write_band(out, fit, i, frame);
  for (std::size_t i = 0; i < fit.pieces.size(); ++i) {
    const Span span = span_of(fit, i, frame.bytes);
    constexpr int parts = 32;
    std::string points;
    for (int part = 0; part <= parts; ++part) {
      const double bytes = span.from * std::pow(span.to / span.from, part / double{parts});
      const models::CurvePiece& piece = fit.pieces[i];
      const double time_s = piece.alpha.value.value() + bytes * piece.beta.value.value();
      points += fmt::format("{}{:.1f},{:.1f}", part == 0 ? "" : " ", frame.bytes.at(bytes),
                            frame.time.at(std::max(time_s, frame.time.least)));
    }
    fmt::format_to(to, "<polyline class=\"fit\" points=\"{}\"/>\n", points);
    if (i == 0) continue;
    const double x = frame.bytes.at(fit.pieces[i].from.value());
    // The texts stand at different heights, so that near ones do not overlap.
    const double y = top + 14 + static_cast<double>(i - 1) * 13;
    fmt::format_to(
        to,
        "<line class=\"break\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>\n"
        "<text class=\"tick\" x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        x, top, bottom, x - 4, y, to_text_binary(fit.pieces[i].from));
  }
}

void write_samples(Buffer& out, std::span<const Sample> samples, const Fit& fit,
                   const Frame& frame) {
  for (const Sample& sample : samples) {
    if (sample.bytes <= Bytes{0}) continue;
    const auto size =
        std::lower_bound(fit.sizes.begin(), fit.sizes.end(), sample.bytes,
                         [](const FittedSize& s, Bytes bytes) { return s.bytes < bytes; });
    const bool outlier = size != fit.sizes.end() && size->outlier;
    fmt::format_to(std::back_inserter(out),
                   "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>\n",
                   outlier ? "outlier" : "sample", frame.bytes.at(sample.bytes.value()),
                   frame.time.at(sample.time.value()));
  }
}

void write_legend(Buffer& out, const Fit& fit, const PlotText& text) {
  auto to = std::back_inserter(out);
  const bool outliers = std::any_of(fit.sizes.begin(), fit.sizes.end(),
                                    [](const FittedSize& size) { return size.outlier; });
  const double x = right - 232;
  double y = bottom - 12 - line_height * (outliers ? 4 : 3);
  const auto row = [&](std::string_view mark, std::string_view words) {
    y += line_height;
    fmt::format_to(to, "{}<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                   fmt::format(fmt::runtime(mark), x, y - 4, x + 22, y - 9), x + 30, y,
                   xml_text(words));
  };
  fmt::format_to(to,
                 "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"230\" height=\"{:.1f}\" fill=\"#fff\" "
                 "fill-opacity=\"0.85\" stroke=\"#bbb\"/>\n",
                 x - 8, y, line_height * (outliers ? 4 : 3) + 8);
  row("<circle class=\"sample\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"3\"/>", text.samples);
  if (outliers)
    row("<circle class=\"outlier\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"3\"/>", "outlier, left out");
  row("<line class=\"fit\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\"/>",
      fmt::format("alpha + n beta, {} piece{}", fit.pieces.size(),
                  fit.pieces.size() == 1 ? "" : "s"));
  row("<rect class=\"band\" x=\"{0:.1f}\" y=\"{3:.1f}\" width=\"22\" height=\"10\"/>",
      fmt::format("90 % interval; residual {:.1f} %", 100 * fit.residual));
}

}  // namespace

std::string fit_svg(std::span<const Sample> samples, const Fit& fit, const PlotText& text) {
  const Frame frame = frame_of(samples, fit);
  const double height = bottom + 54 + line_height * static_cast<double>(fit.complaints.size());
  Buffer out;
  auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
                 "viewBox=\"0 0 "
                 "{0:.0f} {1:.0f}\" font-family=\"sans-serif\">\n"
                 "<style>.grid{{stroke:#ddd}}.tick{{font-size:11px;fill:#333}}.axis{{font-size:"
                 "12px;fill:#111}}"
                 ".title{{font-size:15px;fill:#111}}.bad{{font-size:12px;fill:{2}}}"
                 ".sample{{fill:{3}}}.outlier{{fill:#fff;stroke:{2}}}"
                 ".fit{{fill:none;stroke:{4};stroke-width:1.8}}"
                 ".band{{fill:{4};fill-opacity:0.22;stroke:none}}"
                 ".break{{stroke:#666;stroke-dasharray:4 3}}</style>\n"
                 "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
                 "<text class=\"title\" x=\"{5:.1f}\" y=\"30\">{6}</text>\n",
                 width, height, red, blue, orange, left, xml_text(text.title));
  if (!text.origin.empty())
    fmt::format_to(to, "<text class=\"tick\" x=\"{:.1f}\" y=\"47\">{}</text>\n", left,
                   xml_text(text.origin));
  write_ticks(out, frame);
  write_fit(out, fit, frame);
  write_samples(out, samples, fit, frame);
  write_legend(out, fit, text);
  double y = bottom + 46;
  for (const std::string& complaint : fit.complaints) {
    y += line_height;
    fmt::format_to(to, "<text class=\"bad\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left, y,
                   xml_text(complaint));
  }
  fmt::format_to(to, "</svg>\n");
  return fmt::to_string(out);
}

}  // namespace paceline::calibration
