// Tests: tests/cli/plan_test.py.
#include "cli/plan_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "models/base/parse_units.h"
#include "models/base/svg_axis.h"
#include "models/base/to_size.h"
#include "models/base/xml_text.h"

namespace paceline::cli {
namespace {

using simulator::BucketTravel;
using simulator::ComputeSpan;
using simulator::TaskKind;

// Places in pixels.
constexpr double width = 1180;
constexpr double left = 150;
constexpr double right = width - 24;
constexpr double top = 92;  // of the first lane
constexpr double lane = 34;
constexpr double compute_y = top;
constexpr double ready_y = compute_y + lane + 26;
constexpr double ready_height = 12;
constexpr double network_y = ready_y + ready_height + 46;
constexpr double exposed_y = network_y + lane + 16;
constexpr double exposed_height = 14;
constexpr double bottom = exposed_y + exposed_height + 10;
constexpr double legend_y = bottom + 34;
constexpr double legend_line = 20;

// Colours that differ for all eyes (Okabe & Ito 2008). The last one serves all further all-reduces.
constexpr std::array<const char*, 6> colours = {"#0072b2", "#e69f00", "#009e73",
                                                "#cc79a7", "#56b4e9", "#999999"};

const char* colour_of(int schedule) {
  return colours[std::min(to_size(schedule), colours.size() - 1)];
}

// Of a number on this colour.
const char* text_on(int schedule) {
  return schedule == 0 || schedule == 2 ? "#fff" : "#111";
}

// The most parts that marks cut the axis of time into.
constexpr int most_marks = 12;

class Picture {
 public:
  Picture(const models::NetworkWork& network, const models::Plan& plan,
          const simulator::PlanTravel& travel)
      : network_(network), plan_(plan), travel_(travel) {
    end_ = travel.period;
    for (const BucketTravel& bucket : travel.buckets) end_ = std::max(end_, bucket.end);
    if (!(end_ > Seconds{0})) end_ = Seconds{1};
  }

  std::string draw(const std::string& title, const std::string& facts) {
    const double height =
        legend_y + legend_line * static_cast<double>((plan_.schedules.size() + 1) / 2 + 1) + 12;
    line(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\" "
        "role=\"img\">",
        width, height);
    line("<title>{}</title>", xml_text(title));
    line("<desc>{}</desc>", xml_text(facts));
    line(
        "<style>svg{{background:#fff}}text{{fill:#222;font-size:12px}}.title{{font-size:17px;"
        "font-weight:bold}}.facts,.tick{{fill:#555}}.grid{{stroke:#e2e2e2}}.period{{stroke:#222;"
        "stroke-dasharray:4 3}}.forward{{fill:#b9cfe4}}.backward{{fill:#7f9fc0}}.update{{"
        "fill:#4d6a89}}.layer{{stroke:#fff;stroke-width:.6}}.there{{fill:#c9c9c9}}.way{{fill:#888;"
        "opacity:.25}}.bucket{{stroke:#fff;stroke-width:.8}}.number{{font-size:11px}}"
        ".exposed{{fill:#d55e00}}@media(prefers-color-scheme:dark){{svg{{background:#15181c}}"
        "text{{fill:#e6e6e6}}.facts,.tick{{fill:#a9b0b8}}.grid{{stroke:#30363d}}.period{{"
        "stroke:#e6e6e6}}.layer,.bucket{{stroke:#15181c}}.there{{fill:#5a6068}}.way{{fill:#aaa}}"
        "}}</style>");
    line("<text class=\"title\" x=\"20\" y=\"30\">{}</text>", xml_text(title));
    line("<text class=\"facts\" x=\"20\" y=\"51\">{}</text>", xml_text(facts));
    axis();
    name_of_lane("compute", compute_y + 0.5 * lane);
    for (const ComputeSpan& span : travel_.compute) layer(span);
    name_of_lane("gradients there", ready_y + 0.5 * ready_height);
    name_of_lane("buckets travel", network_y + 0.5 * lane);
    for (std::size_t i = 0; i < travel_.buckets.size(); ++i) bucket(i);
    name_of_lane("computation waits", exposed_y + 0.5 * exposed_height);
    for (const ComputeSpan& span : travel_.idle)
      line(
          "<rect class=\"exposed\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" "
          "height=\"{}\"><title>{}</title></rect>",
          x(span.start), exposed_y, std::max(0.8, x(span.end) - x(span.start)), exposed_height,
          xml_text(fmt::format("the compute stream stands still for {}, from {} to {}",
                               to_text(span.end - span.start), to_text(span.start),
                               to_text(span.end))));
    legend();
    line("</svg>");
    return fmt::to_string(out_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_.push_back('\n');
  }

  [[nodiscard]] double x(Seconds time) const { return left + (right - left) * (time / end_); }

  void name_of_lane(const char* name, double middle) {
    line("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", left - 12, middle + 4, name);
  }

  void axis() {
    const double distance = mark_distance(end_.value(), most_marks);
    for (int i = 0; i * distance <= end_.value() * (1 + 1e-9); ++i) {
      const Seconds time{i * distance};
      line("<line class=\"grid\" x1=\"{0:.2f}\" y1=\"{1}\" x2=\"{0:.2f}\" y2=\"{2}\"/>", x(time),
           top - 6, bottom);
      line("<text class=\"tick\" x=\"{:.2f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x(time),
           top - 12, i == 0 ? "0" : to_text(time));
    }
    line("<line class=\"period\" x1=\"{0:.2f}\" y1=\"{1}\" x2=\"{0:.2f}\" y2=\"{2}\"/>",
         x(travel_.period), top - 6, bottom);
  }

  void layer(const ComputeSpan& span) {
    const bool is_of_layer = span.kind == TaskKind::forward || span.kind == TaskKind::backward;
    const char* kind = span.kind == TaskKind::forward    ? "forward"
                       : span.kind == TaskKind::backward ? "backward"
                                                         : "update";
    const std::string what = is_of_layer ? fmt::format("{} {}", name(span.kind),
                                                       network_.layers[to_size(span.layer)].name)
                                         : std::string(name(span.kind));
    line(
        "<rect class=\"{}{}\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" "
        "height=\"{}\"><title>{}</title></rect>",
        kind, x(span.end) - x(span.start) > 3 ? " layer" : "", x(span.start), compute_y,
        x(span.end) - x(span.start), lane,
        xml_text(fmt::format("{}: {}", what, to_text(span.end - span.start))));
  }

  void bucket(std::size_t index) {
    const models::Bucket& bucket = plan_.buckets[index];
    const BucketTravel& travel = travel_.buckets[index];
    const models::PlannedSchedule& schedule = plan_.schedules[to_size(bucket.schedule)];
    const auto gradient = [&](int offset) -> const std::string& {
      return network_.gradients[to_size(bucket.first_gradient + offset)].name;
    };
    const std::string facts = xml_text(fmt::format(
        "bucket {}: {} gradient{}, {} to {}, {}, {}; ready {}, travels {} to {}, exposed {}", index,
        bucket.gradient_count, bucket.gradient_count == 1 ? "" : "s", gradient(0),
        gradient(bucket.gradient_count - 1), to_text(plan_.bytes(bucket)), described(schedule),
        to_text(travel.ready), to_text(travel.start), to_text(travel.end),
        to_text(travel.exposed)));
    // The bucket fills from when the one before was full.
    const Seconds from = index == 0 ? Seconds{0} : travel_.buckets[index - 1].ready;
    const double full = x(travel.ready);
    const double open = index == 0 ? full - 4 : std::min(full - 1, x(from));
    const double start = x(travel.start);
    const double end = std::max(start + 0.8, x(travel.end));
    line("<g><title>{}</title>", facts);
    line("<rect class=\"there bucket\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"/>",
         open, ready_y, full - open, ready_height);
    line("<path class=\"way\" d=\"M{:.2f} {}H{:.2f}L{:.2f} {}H{:.2f}Z\"/>", open,
         ready_y + ready_height, full, end, network_y, start);
    line(
        "<rect class=\"bucket\" fill=\"{}\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"/>",
        colour_of(bucket.schedule), start, network_y, end - start, lane);
    if (end - start > 16)
      line(
          "<text class=\"number\" style=\"fill:{}\" x=\"{:.2f}\" y=\"{}\" "
          "text-anchor=\"middle\">{}</text>",
          text_on(bucket.schedule), 0.5 * (start + end), network_y + 0.5 * lane + 4, index);
    line("</g>");
  }

  void legend() {
    double y = legend_y;
    const auto entry = [&](double at, const std::string& square, const std::string& text) {
      line("<rect {} x=\"{}\" y=\"{}\" width=\"12\" height=\"12\"/>", square, at, y - 10);
      line("<text x=\"{}\" y=\"{}\">{}</text>", at + 18, y, xml_text(text));
    };
    entry(20, "class=\"forward\"", "forward");
    entry(110, "class=\"backward\"", "backward");
    entry(210, "class=\"update\"", "update");
    entry(290, "class=\"there\"", "a bucket fills");
    entry(410, "class=\"exposed\"", "computation waits for gradients");
    line("<text x=\"650\" y=\"{}\">dashed: the end of the iteration, {}</text>", y,
         xml_text(to_text(travel_.period)));
    for (std::size_t i = 0; i < plan_.schedules.size(); ++i) {
      if (i % 2 == 0) y += legend_line;
      entry(i % 2 == 0 ? 20 : 600, fmt::format("fill=\"{}\"", colour_of(static_cast<int>(i))),
            described(plan_.schedules[i]));
    }
  }

  const models::NetworkWork& network_;
  const models::Plan& plan_;
  const simulator::PlanTravel& travel_;
  Seconds end_;
  fmt::memory_buffer out_;
};

}  // namespace

std::string plan_svg(const std::string& title, const std::string& facts,
                     const models::NetworkWork& network, const models::Plan& plan,
                     const simulator::PlanTravel& travel) {
  return Picture(network, plan, travel).draw(title, facts);
}

}  // namespace paceline::cli
