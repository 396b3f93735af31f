// Tests: tests/cli/reproduce_test.py.
#include "cli/reproduction_text.h"

#include <fmt/core.h>

#include <vector>

#include "experiments/published/summary.h"

namespace paceline::cli {
namespace {

using experiments::Reproduction;
using experiments::Row;
using experiments::Summary;

// Four digits, and a whole number below a million is not shortened.
std::string number(double value) {
  constexpr double many = 1e4;
  constexpr double million = 1e6;
  if (value >= million) return fmt::format("{:.4g} M", value / million);
  return value >= many ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string with_unit(double value, const std::string& unit) {
  return number(value) + " " + unit;
}

// "calibrated" of a row that was spent; else whether the published value is in the interval of
// ours.
std::string verdict(const Row& row) {
  if (row.provenance != Provenance::predicted) return std::string(name(row.provenance));
  if (row.low == row.high) return "predicted";
  return row.is_inside() ? "inside" : "outside";
}

std::string percent_of(int part, int whole) {
  return whole == 0 ? "-" : fmt::format("{:.0f} %", 100.0 * part / whole);
}

// "12 rows: error of the speed median 3.1 %, ...".
std::string summary_line(std::string_view what, const Summary& s) {
  if (s.rows == 0) return "";
  std::string text = fmt::format(
      "{} predicted {}: error of the speed median {:.1f} %, p90 {:.1f} %, worst {}, bias {}; {} of "
      "{} published values inside the interval",
      s.rows, what, 100 * s.median, 100 * s.p90, signed_percent(s.worst), signed_percent(s.bias),
      s.inside, s.rows);
  if (s.pairs > 0)
    text +=
        fmt::format("; {} of {} pairs of strategies in the published order", s.ordered, s.pairs);
  if (const Summary::Naive& naive = s.naive; naive.rows > 0)
    text += fmt::format(
        "\n  naive (as many FLOP/s of a rank as at the largest scale that is known), on "
        "the "
        "{} of them that have one: median {:.1f} %, p90 {:.1f} %; ours there: {:.1f} %, {:.1f} %; "
        "skill {:.0f} %",
        naive.rows, 100 * naive.median, 100 * naive.p90, 100 * naive.our_median,
        100 * naive.our_p90, 100 * naive.skill());
  return text + "\n";
}

std::string summary_lines(std::span<const Row> rows) {
  std::string text;
  for (const experiments::RowClass& kind : experiments::row_classes())
    text += summary_line(kind.words, summary_of(rows, kind.counts));
  const experiments::Sweeps sweeps = experiments::sweeps_of(rows);
  if (sweeps.sweeps > 0)
    text += fmt::format(
        "{} sweeps over {} layouts of one job each: the one that we put first takes {:.1f} % "
        "longer "
        "than the best (median; mean {:.1f} %, worst {:.1f} %), Kendall's tau {:.2f} (median)\n",
        sweeps.sweeps, sweeps.rows, 100 * sweeps.median_regret, 100 * sweeps.mean_regret,
        100 * sweeps.worst_regret, sweeps.median_tau);
  return text;
}

std::string without_text(const char* title, const std::vector<experiments::RowWithout>& rows) {
  if (rows.empty()) return "";
  std::string text = fmt::format("\n{}:\n", title);
  for (const experiments::RowWithout& row : rows)
    text += fmt::format("  {} ({}): {}\n", row.what, row.id, row.why);
  return text;
}

std::vector<std::string> summary_cells(const std::string& name, const Summary& s) {
  return {name,
          fmt::format("{}", s.rows),
          fmt::format("{:.1f}", 100 * s.median),
          fmt::format("{:.1f}", 100 * s.p90),
          fmt::format("{:+.1f}", 100 * s.worst),
          fmt::format("{:+.1f}", 100 * s.bias),
          percent_of(s.inside, s.rows),
          s.pairs == 0 ? "-" : fmt::format("{} of {}", s.ordered, s.pairs)};
}

}  // namespace

Table rows_table(const Reproduction& result) {
  Table table({{.title = "source", .align = Align::left, .least_important = 2},
               {.title = "what", .align = Align::left, .wraps = true},
               {.title = "published"},
               {.title = "ours"},
               {.title = "interval", .least_important = 1},
               {.title = "error"},
               {.title = "", .align = Align::left}});
  for (const Row& row : result.rows) {
    table.add(
        {row.source, row.what, with_unit(row.published, row.unit), with_unit(row.ours, row.unit),
         row.low == row.high ? "" : fmt::format("{} to {}", number(row.low), number(row.high)),
         signed_percent(row.relative_error()), verdict(row)});
  }
  return table;
}

std::string to_text(const Reproduction& result, int width) {
  std::string text = result.title + "\n\n" + rows_table(result).fitted(width).text;
  const std::string summary = summary_lines(result.rows);
  if (!summary.empty()) text += "\n" + summary;
  text += "\nHow ours was made:\n";
  for (const Row& row : result.rows) {
    if (!row.configuration.empty()) text += fmt::format("  {}: {}\n", row.what, row.configuration);
  }
  bool any = false;
  for (const Row& row : result.rows) {
    if (row.note.empty()) continue;
    if (!any) text += "\nNotes:\n";
    any = true;
    text +=
        fmt::format("  {} ({}): {}\n", row.what, signed_percent(row.relative_error()), row.note);
  }
  text += without_text("Left out", result.left_out);
  text += without_text("Could not be predicted", result.failed);
  for (const std::string& note : result.notes) text += "\n" + note + "\n";
  return text;
}

Table summary_table(std::span<const Reproduction> results) {
  Table table({{.title = "source", .align = Align::left},
               {.title = "rows"},
               {.title = "median %"},
               {.title = "p90"},
               {.title = "worst"},
               {.title = "bias"},
               {.title = "inside"},
               {.title = "in order"}});
  for (const Reproduction& result : results) {
    for (const experiments::RowClass& kind : experiments::row_classes()) {
      const Summary s = summary_of(result.rows, kind.counts);
      if (s.rows > 0) table.add(summary_cells(result.name + std::string(kind.suffix), s));
    }
  }
  return table;
}

std::string summary_text(std::span<const Reproduction> results, int width) {
  const std::vector<Row> all = experiments::rows_of(results);
  std::string text = summary_table(results).fitted(width).text + "\n" + summary_lines(all);
  std::size_t left_out = 0;
  std::size_t failed = 0;
  std::size_t calibrated = 0;
  for (const Reproduction& result : results) {
    left_out += result.left_out.size();
    failed += result.failed.size();
  }
  for (const Row& row : all) {
    if (row.provenance == Provenance::calibrated) ++calibrated;
  }
  text += fmt::format("{} rows were spent on calibration, {} are left out", calibrated, left_out);
  if (failed > 0) text += fmt::format(", {} could not be predicted", failed);
  return text + "\n";
}

Table mechanisms_table(std::span<const Reproduction> with,
                       std::span<const experiments::Without> without) {
  Table all({{.title = "without", .align = Align::left},
             {.title = "rows moved"},
             {.title = "training: median %"},
             {.title = "p90"},
             {.title = "bias"},
             {.title = "inside"},
             {.title = "all-reduces: median %"},
             {.title = "bias"}});
  const auto add = [&](std::string_view name, int moved, std::span<const Reproduction> sources) {
    const std::vector<Row> rows = experiments::rows_of(sources);
    const Summary training = summary_of(rows, experiments::is_training);
    const Summary large = summary_of(rows, experiments::is_large_all_reduce);
    all.add({std::string(name), moved < 0 ? "-" : fmt::format("{}", moved),
             fmt::format("{:.1f}", 100 * training.median),
             fmt::format("{:.1f}", 100 * training.p90), fmt::format("{:+.1f}", 100 * training.bias),
             percent_of(training.inside, training.rows), fmt::format("{:.1f}", 100 * large.median),
             fmt::format("{:+.1f}", 100 * large.bias)});
  };
  add("(nothing)", -1, with);
  for (const experiments::Without& one : without)
    add(one.mechanism->name, experiments::rows_moved(with, one.sources), one.sources);
  return all;
}

Table mechanisms_of_sources(std::span<const Reproduction> with,
                            std::span<const experiments::Without> without) {
  std::vector<Table::Column> columns = {{.title = "bias % of a source", .align = Align::left},
                                        {.title = "all"}};
  for (const experiments::Without& one : without)
    columns.push_back({.title = fmt::format("no {}", one.mechanism->name)});
  Table by_source(columns);
  for (std::size_t i = 0; i < with.size(); ++i) {
    if (with[i].rows.empty()) continue;
    const auto bias = [&](const Reproduction& source) {
      return 100 * summary_of(source.rows, [](const Row&) { return true; }).bias;
    };
    std::vector<std::string> cells = {with[i].name, fmt::format("{:+.1f}", bias(with[i]))};
    for (const experiments::Without& one : without) {
      const int moved =
          experiments::rows_moved(with.subspan(i, 1), std::span(one.sources).subspan(i, 1));
      cells.push_back(moved == 0 ? "." : fmt::format("{:+.1f}", bias(one.sources[i])));
    }
    by_source.add(std::move(cells));
  }
  return by_source;
}

std::string mechanisms_text(std::span<const Reproduction> with,
                            std::span<const experiments::Without> without, int width) {
  std::string text = mechanisms_table(with, without).fitted(width).text + "\n" +
                     mechanisms_of_sources(with, without).blocks(width) + "\n";
  for (const experiments::Without& one : without)
    text += fmt::format("without {}: {}\n", one.mechanism->name, one.mechanism->what);
  return text + "a row is moved where it changes by more than 0.5 %; '.': none of the source is\n";
}

std::string commands_text(std::span<const Reproduction> results) {
  std::string text;
  for (const Reproduction& result : results) {
    for (const Row& row : result.rows) {
      if (row.command.empty()) continue;
      text += fmt::format("# {} {}: published {}, ours {}\n{}\n", result.name, row.id,
                          with_unit(row.published, row.unit), with_unit(row.ours, row.unit),
                          row.command);
    }
  }
  return text;
}

}  // namespace paceline::cli
