// Tests: tests/cli/compare_test.py (end to end).
#include "cli/comparison_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "calibration/compare/verdict.h"
#include "models/base/parse_units.h"

namespace paceline::cli {
namespace {

using calibration::Compared;
using calibration::ComparedBucket;
using calibration::ComparedFiles;
using calibration::ComparedLayer;
using calibration::ComparedSide;
using calibration::Comparison;
using calibration::OneSided;
using calibration::Spread;

constexpr std::size_t layers_named = 5;
constexpr std::size_t casts_shown = 8;

std::string fitted(const Table& table, int width) {
  const Table::Fitted fitted = table.fitted(width);
  return fitted.text + fitted.not_shown();
}

// Writes the times of a comparison in ms, with as many decimals as its iteration needs.
class Text {
 public:
  explicit Text(const Comparison& comparison)
      : comparison_(comparison),
        run_(comparison.run.provenance),
        prediction_(comparison.prediction.provenance) {
    const double longest = std::max(comparison.iteration.run.median.value(),
                                    comparison.iteration.prediction.median.value());
    decimals_ = longest >= 1 ? 2 : 3;  // 3: microseconds
  }

  [[nodiscard]] std::string heading(const ComparedFiles& files) const {
    return side_line("run", files.run, comparison_.run) +
           side_line("prediction", files.prediction, comparison_.prediction) +
           fmt::format("\niteration: {} ms {}, {} ms {}{}: {} ms ({})\n",
                       ms(comparison_.iteration.run), run_, ms(comparison_.iteration.prediction),
                       prediction_, interval_text(), difference(comparison_.iteration),
                       relative(comparison_.iteration));
  }

  [[nodiscard]] Table parts() const {
    Table table({{"where it comes from", Align::left},
                 {run_ + " ms"},
                 {"least to most", Align::right, 2},
                 {prediction_ + " ms"},
                 {"difference ms"},
                 {"of the part", Align::right, 1},
                 {"of the iteration", Align::right, 3}});
    for (const calibration::ComparedPart& part : comparison_.parts) {
      const bool is_nothing = ms(part.time.run) == zero() && ms(part.time.prediction) == zero();
      if (!is_nothing)
        table.add(part_row(part.part, part.time, &part != &comparison_.parts.back()));
    }
    table.add(part_row("iteration", comparison_.iteration, true));
    return table;
  }

  // The layers with the largest differences, in one line.
  [[nodiscard]] std::string largest_layers() const {
    std::string text;
    for (std::size_t i = 0; i < std::min(layers_named, comparison_.layers.size()); ++i) {
      const ComparedLayer& layer = comparison_.layers[i];
      if (signed_ms(layer.difference()) == zero()) break;
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", layer.name,
                          signed_ms(layer.difference()));
    }
    return text.empty()
               ? ""
               : fmt::format("\nlayers that differ most, forward and backward, ms: {}{}\n", text,
                             comparison_.layers.size() > layers_named ? ", ..." : "");
  }

  [[nodiscard]] std::string buckets_text(int width) const {
    if (comparison_.buckets.empty()) return "";
    return "\nbuckets: ready after the iteration's start; wait from there to the transfer, less "
           "cast and pack\n" +
           fitted(buckets(), width);
  }

  [[nodiscard]] Table buckets() const {
    Table table({{"bucket", Align::right},
                 {"on the wire", Align::right, 2},
                 {"ready, ms", Align::right, 5},
                 {""},
                 {"wait, ms", Align::right, 4},
                 {""},
                 {"transfer, ms", Align::right, 1},
                 {""},
                 {""},
                 {""},
                 {"exposed, ms"},
                 {""},
                 {""},
                 {"first gradient", Align::left, 3}});
    table.add({"", "", run_, prediction_, run_, prediction_, run_, prediction_, "difference", "",
               run_, prediction_, "difference", ""});
    for (const ComparedBucket& b : comparison_.buckets) {
      table.add({fmt::format("{}", b.index), to_text(b.bytes), ms(b.ready.run),
                 ms(b.ready.prediction), ms(b.wait.run), ms(b.wait.prediction), ms(b.transfer.run),
                 ms(b.transfer.prediction), difference(b.transfer), relative(b.transfer),
                 ms(b.exposed.run), ms(b.exposed.prediction), difference(b.exposed),
                 b.first_gradient});
    }
    if (comparison_.buckets.size() > 1) table.add(sum_of_buckets());
    return table;
  }

  // Casts and copies of buckets, if there are any: for all buckets, or for the first ones.
  [[nodiscard]] std::string casts(bool all) const {
    struct Kind {
      const char* title;
      Compared ComparedBucket::*time;
      Compared sum = {};
    };
    std::vector<Kind> kinds = {{"cast, ms", &ComparedBucket::cast},
                               {"pack, ms", &ComparedBucket::pack},
                               {"unpack, ms", &ComparedBucket::unpack}};
    for (Kind& kind : kinds) {
      for (const ComparedBucket& b : comparison_.buckets) {
        add((b.*kind.time).run, kind.sum.run);
        add((b.*kind.time).prediction, kind.sum.prediction);
      }
    }
    std::erase_if(kinds, [](const Kind& kind) {
      return !kind.sum.run.exists() && !kind.sum.prediction.exists();
    });
    if (kinds.empty()) return "";
    std::vector<Table::Column> columns = {{"bucket"}};
    std::vector<std::string> whose = {""};
    for (const Kind& kind : kinds) {
      columns.insert(columns.end(), {{kind.title}, {""}});
      whose.insert(whose.end(), {run_, prediction_});
    }
    Table table(columns);
    table.add(whose);
    const auto row = [&](std::string what, const auto& time_of) {
      std::vector<std::string> cells = {std::move(what)};
      for (const Kind& kind : kinds)
        cells.insert(cells.end(), {ms(time_of(kind).run), ms(time_of(kind).prediction)});
      table.add(std::move(cells));
    };
    const std::size_t shown =
        all ? comparison_.buckets.size() : std::min(casts_shown, comparison_.buckets.size());
    for (std::size_t i = 0; i < shown; ++i) {
      const ComparedBucket& b = comparison_.buckets[i];
      row(fmt::format("{}", b.index), [&b](const Kind& kind) { return b.*kind.time; });
    }
    if (comparison_.buckets.size() > 1) row("sum", [](const Kind& kind) { return kind.sum; });
    return "\n" + table.text() +
           (shown < comparison_.buckets.size()
                ? fmt::format("(of {} buckets; --layers shows all)\n", comparison_.buckets.size())
                : std::string());
  }

  [[nodiscard]] Table layers() const {
    Table table({{"layer", Align::left},
                 {"kind", Align::left, 2},
                 {"forward, ms", Align::right, 1},
                 {""},
                 {""},
                 {""},
                 {"backward, ms"},
                 {""},
                 {""},
                 {""}});
    table.add({"", "", run_, prediction_, "difference", "", run_, prediction_, "difference", ""});
    for (const ComparedLayer& layer : comparison_.layers) {
      table.add({layer.name, layer.kind, ms(layer.forward.run), ms(layer.forward.prediction),
                 difference(layer.forward), relative(layer.forward), ms(layer.backward.run),
                 ms(layer.backward.prediction), difference(layer.backward),
                 relative(layer.backward)});
    }
    return table;
  }

  [[nodiscard]] std::string one_sided() const {
    std::string text;
    for (const bool is_run : {true, false}) {
      std::string list;
      for (const OneSided& only : comparison_.one_sided) {
        if (only.is_run != is_run) continue;
        list += fmt::format("{}{}{} {} ms", list.empty() ? "" : ", ", only.task,
                            only.tasks > 1 ? fmt::format(" ({})", only.tasks) : std::string(),
                            ms(only.time));
      }
      if (!list.empty())
        text += fmt::format("only {}, in an iteration: {}\n", is_run ? run_ : prediction_, list);
    }
    for (const std::string& note : comparison_.notes) text += fmt::format("note: {}\n", note);
    return text.empty() ? "" : "\n" + text;
  }

 private:
  // " (9.1 to 11.2)", and where the run lies.
  [[nodiscard]] std::string interval_text() const {
    if (!comparison_.interval) return "";
    const auto [low, high] = *comparison_.interval;
    const auto where = calibration::verdict(comparison_.iteration.run.median, low, high);
    return fmt::format(" (90 %: {} to {}; the run is {}{})", ms(low), ms(high), name(where),
                       where == calibration::Verdict::inside ? " it" : "");
  }
  [[nodiscard]] std::string side_line(const char* what, const std::string& file,
                                      const ComparedSide& side) const {
    return fmt::format("{:<10}  {}: {} ({}, {} iteration{})\n", what, side.provenance, side.title,
                       file, side.iterations, side.iterations == 1 ? "" : "s");
  }
  [[nodiscard]] std::vector<std::string> part_row(const std::string& what, const Compared& time,
                                                  bool has_range) const {
    const Seconds whole = comparison_.iteration.prediction.median;
    const std::optional<Seconds> by = time.difference();
    return {what,
            ms(time.run),
            has_range && time.run.exists()
                ? fmt::format("{} to {}", ms(time.run.least), ms(time.run.most))
                : std::string(),
            ms(time.prediction),
            difference(time),
            relative(time),
            by && whole > Seconds{0} ? signed_percent(*by / whole) : std::string("-")};
  }

  static void add(const Spread& time, Spread& sum) {
    if (!time.exists()) return;
    sum.median += time.median;
    sum.iterations = time.iterations;
  }
  // The difference of the medians; "-" where a side does not have the task.
  [[nodiscard]] std::vector<std::string> sum_of_buckets() const {
    Bytes bytes;
    Compared transfer;
    Compared exposed;
    const auto add_both = [](const Compared& time, Compared& sum) {
      if (!time.difference()) return;
      add(time.run, sum.run);
      add(time.prediction, sum.prediction);
    };
    for (const ComparedBucket& b : comparison_.buckets) {
      bytes += b.bytes;
      add_both(b.transfer, transfer);
      add_both(b.exposed, exposed);
    }
    return {"sum",
            to_text(bytes),
            "",
            "",
            "",
            "",
            ms(transfer.run),
            ms(transfer.prediction),
            difference(transfer),
            relative(transfer),
            ms(exposed.run),
            ms(exposed.prediction),
            difference(exposed),
            ""};
  }

  [[nodiscard]] std::string zero() const { return ms(Seconds{0}); }
  [[nodiscard]] std::string ms(Seconds time) const {
    const std::string text = fmt::format("{:.{}f}", time.value() * 1e3, decimals_);
    // A difference that rounds to nothing is written without a sign: "0.000", not "-0.000".
    return text.find_first_of("123456789") == std::string::npos && text.starts_with('-')
               ? text.substr(1)
               : text;
  }
  [[nodiscard]] std::string ms(const Spread& time) const {
    return time.exists() ? ms(time.median) : "-";
  }
  [[nodiscard]] std::string signed_ms(Seconds time) const {
    const std::string text = ms(time);
    return text.starts_with('-') || text == zero() ? text : "+" + text;
  }
  [[nodiscard]] std::string difference(const Compared& time) const {
    const std::optional<Seconds> by = time.difference();
    return by ? signed_ms(*by) : "-";
  }
  // The difference as a share of the prediction; "-" where the prediction rounds to nothing. A run
  // that takes ten times as long or more has the factor instead: "12 times".
  [[nodiscard]] std::string relative(const Compared& time) const {
    const std::optional<double> by = time.relative();
    if (!by || ms(time.prediction) == zero()) return "-";
    const double times = 1 + *by;
    return times < 10 ? signed_percent(*by) : fmt::format("{:.0f} times", times);
  }

  const Comparison& comparison_;
  std::string run_;
  std::string prediction_;
  int decimals_ = 3;
};

}  // namespace

std::string to_text(const Comparison& comparison, const ComparedFiles& files, bool with_layers,
                    int width) {
  const Text text(comparison);
  return text.heading(files) + "\n" + fitted(text.parts(), width) +
         (with_layers ? "\n" + fitted(text.layers(), width) : text.largest_layers()) +
         text.buckets_text(width) + text.casts(with_layers) + text.one_sided();
}

std::vector<Table> tables(const Comparison& comparison, bool with_layers) {
  const Text text(comparison);
  std::vector<Table> tables = {text.parts()};
  if (with_layers) tables.push_back(text.layers());
  if (!comparison.buckets.empty()) tables.push_back(text.buckets());
  return tables;
}

}  // namespace paceline::cli
