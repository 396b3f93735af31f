// Time against cost as a picture. Tests: tests/cli/capacity_test.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "cli/job/capacity.h"
#include "models/base/parse_units.h"
#include "models/base/svg_axis.h"
#include "models/base/xml_text.h"

namespace paceline::job {
namespace {

using Buffer = fmt::memory_buffer;

// Sizes of the picture and of the frame within it, in pixels.
constexpr double width = 940;
constexpr double height = 560;
constexpr double left = 84;
constexpr double right = 680;
constexpr double top = 64;
constexpr double bottom = 488;
constexpr double line_height = 18;

// Colours that the colour-blind can tell apart (Okabe and Ito 2008), without the yellow.
constexpr std::array colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                "#e69f00", "#56b4e9", "#555555"};

const char* colour_of(std::size_t cluster) {
  return colours[cluster % colours.size()];
}

LogAxis axis_over(std::vector<double> values, double begin, double end) {
  std::erase_if(values, [](double value) { return !(value > 0); });
  if (values.empty()) values.push_back(1);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {*least / 1.25, *most * 1.25, begin, end};
}

struct Tick {
  double value;
  std::string text;
};

constexpr double minute = 60;
constexpr double hour = 3600;
constexpr double day = 86400;

// Round times within the axis, as far as their texts have room.
std::vector<Tick> time_ticks(const LogAxis& axis) {
  std::vector<Tick> all;
  const auto add = [&](double unit, const char* name, std::initializer_list<double> counts) {
    for (const double count : counts) {
      const double value = unit * count;
      if (value >= axis.least && value <= axis.most)
        all.push_back({value, fmt::format("{:g} {}", count, name)});
    }
  };
  add(1, "s", {1e-3, 1e-2, 0.1, 1, 2, 5, 10, 20, 30});
  add(minute, "min", {1, 2, 5, 10, 20, 30});
  add(hour, "h", {1, 2, 4, 8, 12});
  add(day, "d", {1, 2, 4, 7, 14, 30, 60, 120, 365, 3650});
  // A tick has room for its text.
  constexpr double room = 52;
  std::vector<Tick> shown;
  for (const Tick& tick : all) {
    if (shown.empty() || axis.at(tick.value) - axis.at(shown.back().value) >= room)
      shown.push_back(tick);
  }
  return shown;
}

struct Frame {
  LogAxis time;
  LogAxis cost;
};

Frame frame_of(const Capacity& capacity) {
  std::vector<double> times;
  std::vector<double> costs;
  for (const CapacityCandidate& candidate : capacity.candidates) {
    if (!candidate.outcome.cost) continue;
    times.push_back(candidate.outcome.time.value.value());
    costs.push_back(candidate.outcome.cost->value.value());
  }
  for (const std::size_t i : capacity.front) {
    const simulator::Outcome& outcome = capacity.candidates[i].outcome;
    times.insert(times.end(), {outcome.time.low.value(), outcome.time.high.value()});
    costs.insert(costs.end(), {outcome.cost->low.value(), outcome.cost->high.value()});
  }
  if (capacity.demand.within) times.push_back(capacity.demand.within->value());
  if (capacity.demand.budget) costs.push_back(capacity.demand.budget->value());
  return {axis_over(std::move(times), left, right), axis_over(std::move(costs), bottom, top)};
}

void write_axes(Buffer& out, const Frame& frame) {
  constexpr AxisFrame lines{left, right, top, bottom};
  for (const Tick& tick : time_ticks(frame.time))
    out.append(lines.mark_across(frame.time.at(tick.value), tick.text));
  for (const double cost : marks_of_decades(frame.cost.least, frame.cost.most))
    out.append(lines.mark_along(frame.cost.at(cost), to_text(Usd{cost})));
  out.append(lines.border("time to train", "cost", 18));
}

void write_limits(Buffer& out, const Capacity& capacity, const Frame& frame) {
  auto to = std::back_inserter(out);
  if (capacity.demand.within) {
    const double x = frame.time.at(capacity.demand.within->value());
    fmt::format_to(
        to, "<line class=\"limit\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>\n",
        x, top, bottom);
  }
  if (capacity.demand.budget) {
    const double y = frame.cost.at(capacity.demand.budget->value());
    fmt::format_to(
        to, "<line class=\"limit\" x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n",
        left, right, y);
  }
}

void write_front(Buffer& out, const Capacity& capacity, const Frame& frame) {
  auto to = std::back_inserter(out);
  // Between two points of the front nothing is known to be as good as both, so that the line goes in
  // steps.
  std::string points;
  double last_y = 0;
  for (const std::size_t i : capacity.front) {
    const simulator::Outcome& outcome = capacity.candidates[i].outcome;
    const double x = frame.time.at(outcome.time.value.value());
    const double y = frame.cost.at(outcome.cost->value.value());
    if (!points.empty()) points += fmt::format(" {:.1f},{:.1f} ", x, last_y);
    points += fmt::format("{:.1f},{:.1f}", x, y);
    last_y = y;
  }
  if (capacity.front.size() > 1)
    fmt::format_to(to, "<polyline class=\"front\" points=\"{}\"/>\n", points);
  for (const std::size_t i : capacity.front) {
    const CapacityCandidate& candidate = capacity.candidates[i];
    const simulator::Outcome& outcome = candidate.outcome;
    const double x = frame.time.at(outcome.time.value.value());
    const double y = frame.cost.at(outcome.cost->value.value());
    fmt::format_to(
        to,
        "<g stroke=\"{0}\" fill=\"{0}\"><line class=\"interval\" x1=\"{1:.1f}\" y1=\"{3:.1f}\" "
        "x2=\"{2:.1f}\" y2=\"{3:.1f}\"/><line class=\"interval\" x1=\"{4:.1f}\" y1=\"{5:.1f}\" "
        "x2=\"{4:.1f}\" y2=\"{6:.1f}\"/><circle cx=\"{4:.1f}\" cy=\"{3:.1f}\" r=\"5\"/></g>\n"
        "<text class=\"tick\" x=\"{7:.1f}\" y=\"{8:.1f}\">{9}</text>\n",
        colour_of(candidate.cluster), frame.time.at(outcome.time.low.value()),
        frame.time.at(outcome.time.high.value()), y, x, frame.cost.at(outcome.cost->low.value()),
        frame.cost.at(outcome.cost->high.value()), x + 7, y - 6, candidate.ranks);
  }
}

// Returns how many have no cost.
std::size_t write_candidates(Buffer& out, const Capacity& capacity, const Frame& frame) {
  std::size_t without = 0;
  for (const CapacityCandidate& candidate : capacity.candidates) {
    if (!candidate.outcome.cost) {
      ++without;
      continue;
    }
    fmt::format_to(std::back_inserter(out),
                   "<circle class=\"other\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n",
                   frame.time.at(candidate.outcome.time.value.value()),
                   frame.cost.at(candidate.outcome.cost->value.value()),
                   colour_of(candidate.cluster));
  }
  return without;
}

void write_legend(Buffer& out, const Capacity& capacity) {
  auto to = std::back_inserter(out);
  const double x = right + 22;
  double y = top + 4;
  const auto row = [&](const std::string& mark, const std::string& text) {
    y += line_height;
    fmt::format_to(to, "{}<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", mark, x + 22,
                   y, xml_text(text));
  };
  for (std::size_t i = 0; i < capacity.clusters.size(); ++i)
    row(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>", x + 6,
                    y + line_height - 4, colour_of(i)),
        capacity.clusters[i].label());
  y += line_height / 2;
  row(fmt::format("<line class=\"front\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
                  x - 4, y + line_height - 4, x + 16, y + line_height - 4),
      "front, with ranks");
  row(fmt::format("<line class=\"interval\" stroke=\"#555\" x1=\"{:.1f}\" y1=\"{:.1f}\" "
                  "x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
                  x - 4, y + line_height - 4, x + 16, y + line_height - 4),
      "90 % interval");
  if (capacity.demand.within || capacity.demand.budget)
    row(fmt::format(
            "<line class=\"limit\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
            x - 4, y + line_height - 4, x + 16, y + line_height - 4),
        "asked for");
  if (capacity.answer)
    row(fmt::format("<circle class=\"answer\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\"/>", x + 6,
                    y + line_height - 4),
        fmt::format("the answer, {} ranks of", capacity.candidates[*capacity.answer].ranks));
  if (capacity.answer) row("", capacity.label(capacity.candidates[*capacity.answer]));
}

}  // namespace

std::string to_svg(const Capacity& capacity) {
  const Frame frame = frame_of(capacity);
  Buffer out;
  auto to = std::back_inserter(out);
  fmt::format_to(
      to,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\">\n"
      "<style>.grid{{stroke:#ddd}}.tick{{font-size:11px;fill:#333;stroke:none}}"
      ".axis{{font-size:12px;fill:#111}}.title{{font-size:15px;fill:#111}}"
      ".other{{fill-opacity:0.45}}.front{{fill:none;stroke:#333;stroke-width:1.4}}"
      ".interval{{stroke-width:1.1;stroke-opacity:0.7}}"
      ".limit{{stroke:#b3261e;stroke-dasharray:6 4}}"
      ".answer{{fill:none;stroke:#111;stroke-width:2}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text class=\"title\" x=\"{2:.1f}\" y=\"30\">{3}</text>\n"
      "<text class=\"tick\" x=\"{2:.1f}\" y=\"48\">predicted; {4} candidates</text>\n",
      width, height, left,
      xml_text(fmt::format("{}: time and cost of training",
                           capacity.candidates.front().job().networks.front().work.name)),
      capacity.candidates.size());
  write_axes(out, frame);
  write_limits(out, capacity, frame);
  const std::size_t without = write_candidates(out, capacity, frame);
  write_front(out, capacity, frame);
  if (capacity.answer && capacity.candidates[*capacity.answer].outcome.cost) {
    const simulator::Outcome& outcome = capacity.candidates[*capacity.answer].outcome;
    fmt::format_to(to, "<circle class=\"answer\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"9\"/>\n",
                   frame.time.at(outcome.time.value.value()),
                   frame.cost.at(outcome.cost->value.value()));
  }
  write_legend(out, capacity);
  if (without > 0)
    fmt::format_to(
        to,
        "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{} candidates have no price, and "
        "are not drawn</text>\n",
        left, height - 12, without);
  fmt::format_to(to, "</svg>\n");
  return fmt::to_string(out);
}

}  // namespace paceline::job
