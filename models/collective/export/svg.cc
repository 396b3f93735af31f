// Tests: tests/models/export_svg_test.cc.
#include "models/collective/export/svg.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/base/xml_text.h"
#include "models/collective/enumerate.h"

namespace paceline::models {
namespace {

// Two colours that differ for all eyes and in grey (Okabe & Ito 2008).
constexpr const char* reduce_colour = "#d55e00";
constexpr const char* copy_colour = "#0072b2";

// The steps that one column shows: `repeats` alike ones from `first` on.
struct Column {
  int first = 0;
  int repeats = 1;
  std::map<std::pair<int, int>, std::set<bool>> arrows;  // (from, to) -> reduce or not, or both
  std::string size;                                      // of its messages
};

// `part` of `whole` as "n", "n/8" or "3n/8".
std::string fraction(std::int64_t part, std::int64_t whole) {
  const std::int64_t divisor = std::gcd(part, whole);
  part /= divisor;
  whole /= divisor;
  const std::string over = whole == 1 ? "n" : fmt::format("n/{}", whole);
  return part == 1 ? over : fmt::format("{}{}", part, over);
}

std::string sizes_text(const std::set<std::int64_t>& sizes, std::int64_t chunks) {
  if (sizes.empty()) return "";
  const std::string least = fraction(*sizes.begin(), chunks);
  if (sizes.size() == 1) return least;
  return fmt::format("{} to {}", least, fraction(*sizes.rbegin(), chunks));
}

std::vector<Column> columns_of(const Schedule& schedule, std::int64_t chunks) {
  constexpr int worth_a_mark = 3;
  std::vector<Column> columns;
  int arrows = 0;
  for (int step = 0; step < schedule.steps();) {
    const int alike = schedule.repeats(step);
    const int shown = alike < worth_a_mark ? 1 : alike;
    if (static_cast<int>(columns.size()) == SvgLimits::columns) {
      throw InputError(fmt::format("the picture would have more than {} columns of steps that "
                                   "differ",
                                   SvgLimits::columns),
                       "draw fewer ranks or segments");
    }
    Column column{.first = step, .repeats = shown, .arrows = {}, .size = {}};
    std::set<std::int64_t> sizes;
    for_each_transfer(schedule, step, Span<std::int64_t>{0, chunks},
                      [&](const Transfer<std::int64_t>& t) {
                        if (t.span.size == 0) return;
                        sizes.insert(t.span.size);
                        if (column.arrows[{t.from, t.to}].insert(t.reduce).second) ++arrows;
                      });
    if (arrows > SvgLimits::arrows) {
      throw InputError(fmt::format("the picture would have more than {} arrows", SvgLimits::arrows),
                       "draw fewer ranks or segments");
    }
    column.size = sizes_text(sizes, chunks);
    columns.push_back(std::move(column));
    step += shown;
  }
  return columns;
}

class Picture {
 public:
  Picture(const Schedule& schedule, std::vector<Column> columns)
      : ranks_(schedule.ranks()), columns_(std::move(columns)) {
    row_ = ranks_ <= 8 ? 34 : ranks_ <= 16 ? 26 : ranks_ <= 32 ? 19 : 15;
    rank_font_ = ranks_ <= 16 ? 13 : ranks_ <= 32 ? 12 : 11;
    int at = left;
    for (const Column& column : columns_) {
      edges_.push_back(at);
      at += width_of(column);
    }
    edges_.push_back(at);
    top_ = has_repeats() ? 112 : 94;
  }

  std::string draw(std::string_view name, std::string_view facts, std::string_view description) {
    const int bottom = y(ranks_ - 1) + row_ / 2 + 8;
    const int legend = bottom + 46;
    const int text_width =
        static_cast<int>(std::max(name.size() * 11, facts.size() * 8)) + 2 * margin;
    const int width = std::max({edges_.back() + margin, text_width, 400});
    const int height = legend + legend_lines() * 22 + 8;
    line(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#222222\">",
        width, height);
    line("  <title>{}: {}</title>", xml_text(name), xml_text(facts));
    line("  <desc>{}</desc>", xml_text(description));
    markers();
    line("  <rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>", width, height);
    line("  <text x=\"{}\" y=\"32\" font-size=\"19\" font-weight=\"bold\">{}</text>", margin,
         xml_text(name));
    line("  <text x=\"{}\" y=\"54\" fill=\"#555555\">{}</text>", margin, xml_text(facts));
    grid(bottom);
    arrows();
    draw_legend(legend);
    line("</svg>");
    return std::move(text_);
  }

 private:
  static constexpr int margin = 20;
  static constexpr int left = 78;   // of the first column
  static constexpr int inset = 12;  // from a column's edge to an arrow's end

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  [[nodiscard]] int y(int rank) const { return top_ + row_ / 2 + rank * row_; }
  [[nodiscard]] int x(std::size_t column) const { return edges_[column]; }
  [[nodiscard]] bool is_dense(const Column& column) const {
    return static_cast<int>(column.arrows.size()) > 5 * ranks_;
  }
  // Arrows that go far are given room to do so at an angle.
  [[nodiscard]] int width_of(const Column& column) const {
    int farthest = 0;
    for (const auto& [ends, kinds] : column.arrows)
      farthest = std::max(farthest, std::abs(ends.first - ends.second) * row_);
    const int most = is_dense(column) ? 260 : 150;
    return std::max(std::clamp(56 + farthest * 3 / 10, 66, most),
                    static_cast<int>(column.size.size()) * 8 + 16);
  }

  // Lengths in markers are in user units: heads are of one size whatever the width of the line.
  void markers() {
    const int size = row_ >= 19 ? 9 : 7;
    line("  <defs>");
    line(
        "    <marker id=\"added\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"{0}\" "
        "markerHeight=\"{0}\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
        "<path d=\"M 0 1 L 10 5 L 0 9 z\" fill=\"{1}\"/></marker>",
        size, reduce_colour);
    line(
        "    <marker id=\"put\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"{0}\" "
        "markerHeight=\"{0}\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
        "<path d=\"M 1 1 L 9 5 L 1 9\" fill=\"none\" stroke=\"{1}\" "
        "stroke-width=\"1.6\"/></marker>",
        size, copy_colour);
    line("  </defs>");
  }

  void grid(int bottom) {
    const int end = edges_.back();
    for (std::size_t c = 0; c < columns_.size(); c += 2) {
      line("  <rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#f3f4f6\"/>", x(c),
           top_ - 4, x(c + 1) - x(c), bottom - top_ + 4);
    }
    line("  <g stroke=\"#9aa0a6\" stroke-width=\"1\">");
    for (int rank = 0; rank < ranks_; ++rank)
      line("    <path d=\"M {} {} H {}\"/>", left - 8, y(rank), end + 8);
    line("  </g>");
    line("  <g font-size=\"{}\" text-anchor=\"end\">", rank_font_);
    for (int rank = 0; rank < ranks_; ++rank)
      line("    <text x=\"{}\" y=\"{}\">{}</text>", left - 14, y(rank) + rank_font_ * 35 / 100,
           rank);
    line("  </g>");
    line("  <g fill=\"#555555\">");
    line("    <text x=\"{}\" y=\"{}\">step</text>", margin, 84);
    line("    <text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">rank</text>",
         margin + 10, (y(0) + y(ranks_ - 1)) / 2);
    line("    <text x=\"{}\" y=\"{}\">message</text>", margin, bottom + 20);
    line("  </g>");
    line("  <g text-anchor=\"middle\">");
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const Column& column = columns_[c];
      const int middle = (x(c) + x(c + 1)) / 2;
      if (column.repeats == 1) {
        line("    <text x=\"{}\" y=\"84\">{}</text>", middle, column.first + 1);
      } else {
        line("    <text x=\"{}\" y=\"84\">{} to {}</text>", middle, column.first + 1,
             column.first + column.repeats);
        line("    <text x=\"{}\" y=\"102\" font-weight=\"bold\">\u00d7 {}</text>", middle,
             column.repeats);
      }
      line("    <text x=\"{}\" y=\"{}\" fill=\"#555555\">{}</text>", middle, bottom + 20,
           column.size);
    }
    line("  </g>");
  }

  void arrow(std::size_t column, std::pair<int, int> ends, int shift) {
    line("      <path d=\"M {} {} L {} {}\"/>", x(column) + inset, y(ends.first) + shift,
         x(column + 1) - inset, y(ends.second) + shift);
  }
  // In a dense column only one rank's messages are drawn in full.
  void pale_arrows(bool reduce) {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (!is_dense(columns_[c])) continue;
      const auto& all = columns_[c].arrows;
      line("  <g fill=\"none\" stroke=\"{}\" stroke-width=\"0.7\" stroke-opacity=\"{:.2f}\">",
           reduce ? reduce_colour : copy_colour,
           std::clamp(4.0 * ranks_ / static_cast<double>(all.size()), 0.06, 0.5));
      for (const auto& [ends, kinds] : all) {
        if (kinds.contains(reduce) && ends.first != all.begin()->first.first) arrow(c, ends, 0);
      }
      line("  </g>");
    }
  }
  void arrows() {
    for (const bool reduce : {false, true}) pale_arrows(reduce);
    for (const bool reduce : {false, true}) {
      line("  <g fill=\"none\" stroke=\"{}\" stroke-width=\"1.7\" marker-end=\"url(#{})\">",
           reduce ? reduce_colour : copy_colour, reduce ? "added" : "put");
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        const auto& all = columns_[c].arrows;
        for (const auto& [ends, kinds] : all) {
          if (!kinds.contains(reduce)) continue;
          if (is_dense(columns_[c]) && ends.first != all.begin()->first.first) continue;
          // Where both kinds go the same way, they are drawn side by side.
          arrow(c, ends, kinds.size() == 1 ? 0 : reduce ? -3 : 3);
        }
      }
      line("  </g>");
    }
    line("  <g fill=\"#222222\">");
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      std::set<int> senders;
      for (const auto& [ends, kinds] : columns_[c].arrows) senders.insert(ends.first);
      for (const int sender : senders)
        line("    <circle cx=\"{}\" cy=\"{}\" r=\"{}\"/>", x(c) + inset, y(sender),
             row_ >= 19 ? "2.6" : "2");
    }
    line("  </g>");
  }

  [[nodiscard]] bool holds(bool reduce) const {
    return std::any_of(columns_.begin(), columns_.end(), [reduce](const Column& column) {
      return std::any_of(column.arrows.begin(), column.arrows.end(),
                         [reduce](const auto& arrow) { return arrow.second.contains(reduce); });
    });
  }
  [[nodiscard]] bool has_repeats() const {
    return std::any_of(columns_.begin(), columns_.end(),
                       [](const Column& column) { return column.repeats > 1; });
  }
  [[nodiscard]] bool has_dense() const {
    return std::any_of(columns_.begin(), columns_.end(),
                       [this](const Column& column) { return is_dense(column); });
  }
  [[nodiscard]] int legend_lines() const {
    return (holds(true) ? 1 : 0) + (holds(false) ? 1 : 0) + (has_repeats() ? 1 : 0) +
           (has_dense() ? 1 : 0);
  }
  void draw_legend(int at) {
    const auto entry = [&](bool reduce, const char* meaning) {
      line(
          "  <path d=\"M {} {} H {}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.7\" "
          "marker-end=\"url(#{})\"/>",
          margin, at, margin + 34, reduce ? reduce_colour : copy_colour, reduce ? "added" : "put");
      line("  <text x=\"{}\" y=\"{}\">{}</text>", margin + 44, at + 4, meaning);
      at += 22;
    };
    if (holds(true)) entry(true, "reduce: added to what the receiver holds");
    if (holds(false)) entry(false, "copy: replaces what the receiver holds");
    if (has_repeats()) {
      line("  <text x=\"{}\" y=\"{}\" font-weight=\"bold\">\u00d7 m</text>", margin + 4, at + 4);
      line("  <text x=\"{}\" y=\"{}\">m steps with the same partners, drawn once</text>",
           margin + 44, at + 4);
      at += 22;
    }
    if (has_dense()) {
      line("  <path d=\"M {} {} H {}\" stroke=\"#555555\" stroke-opacity=\"0.4\"/>", margin, at,
           margin + 34);
      line("  <text x=\"{}\" y=\"{}\">pale: messages of the other ranks</text>", margin + 44,
           at + 4);
    }
  }

  int ranks_;
  std::vector<Column> columns_;
  std::vector<int> edges_;  // of the columns, left to right
  int row_ = 0;             // height of a rank, pixels
  int rank_font_ = 0;
  int top_ = 0;  // of the first rank's row
  std::string text_;
};

}  // namespace

std::string svg(const Schedule& schedule, std::string_view name, std::string_view collective) {
  if (schedule.ranks() < 2)
    throw InputError("one rank exchanges nothing", "give --ranks 2 or more");
  if (schedule.ranks() > SvgLimits::ranks) {
    throw InputError(fmt::format("a picture of {} ranks is not legible", schedule.ranks()),
                     fmt::format("draw at most {}", SvgLimits::ranks));
  }
  const std::int64_t natural = schedule.natural_chunks();
  if (natural == 0)
    throw InputError("the bucket is cut into too many parts to say how large they are",
                     "draw fewer ranks or segments");
  Picture picture(schedule, columns_of(schedule, natural));
  const std::string facts =
      fmt::format("{}, p = {} ranks, {} steps, n bytes in {} chunk{}", collective, schedule.ranks(),
                  schedule.steps(), natural, natural == 1 ? "" : "s");
  return picture.draw(name, facts, schedule.description());
}

}  // namespace paceline::models
