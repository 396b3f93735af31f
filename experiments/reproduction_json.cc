// Tests: tests/cli/command_test.py, tests/cli/reproduce_test.py, tests/cli/schemas_test.py.
#include "experiments/reproduction_json.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "experiments/published/summary.h"
#include "models/base/json_records.h"

namespace paceline::experiments {
namespace {

const Document<Row>& row_document() {
  static const auto document =
      Document<Row>()
          .add("id", &Row::id)
          .add("source", &Row::source, any_text())
          .add("what", &Row::what)
          .add("provenance", &Row::provenance)
          .add("unit", &Row::unit)
          .add("published", &Row::published)
          .add("ours", &Row::ours, or_null(any_number()))
          .add("low", &Row::low, or_null(any_number()))
          .add("high", &Row::high, or_null(any_number()))
          .add("inside", &Row::is_inside)
          .add("relative_error", &Row::relative_error, or_null(any_number()))
          .add("speed_error", &Row::speed_error, or_null(any_number()))
          .add("kind", &Row::kind)
          .add("series", &Row::series, any_text())
          .add("strategy", &Row::strategy, any_text())
          .add("configuration", &Row::configuration, any_text())
          .add("command", &Row::command, any_text())
          .add("note", &Row::note, any_text())
          .add_if_any(
              "bytes",
              [](const Row& row) {
                return row.kind == RowKind::all_reduce || row.kind == RowKind::collective
                           ? std::optional(row.bytes)
                           : std::nullopt;
              },
              not_negative())
          .add_if_any("naive", &Row::naive, or_null(any_number()));
  return document;
}

const Document<RowWithout>& without_document() {
  static const auto document = Document<RowWithout>()
                                   .add("id", &RowWithout::id)
                                   .add("what", &RowWithout::what, any_text())
                                   .add("why", &RowWithout::why, any_text());
  return document;
}

const Document<Summary::Naive>& naive_document() {
  using Naive = Summary::Naive;
  static const auto document = Document<Naive>()
                                   .add("rows", &Naive::rows)
                                   .add("median_error", &Naive::median)
                                   .add("p90_error", &Naive::p90)
                                   .add("skill", &Naive::skill)
                                   .add("our_median_error", &Naive::our_median)
                                   .add("our_p90_error", &Naive::our_p90);
  return document;
}

const Document<Summary>& summary_document() {
  const auto of_rows = [](auto member) {
    return [member](const Summary& of) {
      return of.rows > 0 ? std::optional(of.*member) : std::nullopt;
    };
  };
  static const auto document =
      Document<Summary>()
          .add("rows", &Summary::rows)
          .add("calibrated", &Summary::calibrated)
          .add_if_any("median_error", of_rows(&Summary::median))
          .add_if_any("p90_error", of_rows(&Summary::p90))
          .add_if_any("worst_error", of_rows(&Summary::worst))
          .add_if_any("bias", of_rows(&Summary::bias))
          .add_if_any("inside", of_rows(&Summary::inside))
          .add_if_any("pairs", of_rows(&Summary::pairs))
          .add_if_any("ordered", of_rows(&Summary::ordered))
          .add_if_any(
              "naive",
              [](const Summary& of) {
                return of.naive.rows > 0 ? std::optional(of.naive) : std::nullopt;
              },
              naive_document());
  return document;
}

using Rows = std::vector<Row>;

const Document<Sweeps>& sweeps_document() {
  static const auto document = Document<Sweeps>()
                                   .add("sweeps", &Sweeps::sweeps, at_least(1))
                                   .add("rows", &Sweeps::rows, at_least(1))
                                   .add("median_regret", &Sweeps::median_regret)
                                   .add("mean_regret", &Sweeps::mean_regret)
                                   .add("worst_regret", &Sweeps::worst_regret)
                                   .add("median_tau", &Sweeps::median_tau);
  return document;
}

// Nothing where rows are layouts of no job.
std::optional<Sweeps> any_sweeps(const Rows& rows) {
  const Sweeps sweeps = sweeps_of(rows);
  return sweeps.sweeps > 0 ? std::optional(sweeps) : std::nullopt;
}

const Document<Rows>& summaries_document() {
  static const auto document = [] {
    Document<Rows> classes;
    for (const RowClass& kind : row_classes())
      classes.add(
          kind.key, [&kind](const Rows& rows) { return summary_of(rows, kind.counts); },
          summary_document());
    return classes;
  }();
  return document;
}

// What the rows of a source, or of all, are without a mechanism.
struct MovedLine {
  int moved;
  Rows rows;
};

const Document<MovedLine>& moved_document() {
  static const auto document = Document<MovedLine>()
                                   .add("rows_moved", &MovedLine::moved)
                                   .add("summary", &MovedLine::rows, summaries_document());
  return document;
}

struct WithoutLine {
  std::span<const Reproduction> with;
  const Without& without;

  [[nodiscard]] MovedLine of_all() const {
    return {rows_moved(with, without.sources), rows_of(without.sources)};
  }
  // One line for each source that the mechanism moves.
  [[nodiscard]] std::vector<std::pair<std::string, MovedLine>> of_sources() const {
    std::vector<std::pair<std::string, MovedLine>> lines;
    for (std::size_t i = 0; i < with.size(); ++i) {
      const int moved = rows_moved(with.subspan(i, 1), std::span(without.sources).subspan(i, 1));
      if (moved > 0) lines.push_back({with[i].name, {moved, without.sources[i].rows}});
    }
    return lines;
  }
};

const Document<WithoutLine>& mechanism_document() {
  using Line = WithoutLine;
  static const auto document =
      Document<Line>()
          .add("name", [](const Line& line) { return line.without.mechanism->name; })
          .add("what", [](const Line& line) { return line.without.mechanism->what; })
          .include(&Line::of_all, moved_document())
          .add_mapping("sources", &Line::of_sources, moved_document());
  return document;
}

}  // namespace

const Document<Reproduction>& reproduction_document() {
  static const auto document =
      Document<Reproduction>("paceline.reproduction/2",
                             "paceline reproduce SOURCE --json: published results beside ours.")
          .add("name", &Reproduction::name)
          .add("title", &Reproduction::title)
          .add("rows", &Reproduction::rows, row_document())
          .add("left_out", &Reproduction::left_out, without_document())
          .add("failed", &Reproduction::failed, without_document())
          .add("summary", &Reproduction::rows, summaries_document())
          .add_if_any(
              "sweeps", [](const Reproduction& of) { return any_sweeps(of.rows); },
              sweeps_document());
  return document;
}

const Document<Reproductions>& reproductions_document() {
  static const auto document =
      Document<Reproductions>("paceline.reproductions/1", "paceline reproduce all --json.")
          .add("sources", std::identity(), reproduction_document(), 1)
          .add("summary", rows_of, summaries_document())
          .add_if_any(
              "sweeps", [](const Reproductions& all) { return any_sweeps(rows_of(all)); },
              sweeps_document());
  return document;
}

const Document<Mechanisms>& mechanisms_document() {
  static const auto document =
      Document<Mechanisms>("paceline.mechanisms/1",
                           "paceline reproduce all --mechanisms --json: what each mechanism of the "
                           "model changes.")
          .add(
              "summary", [](const Mechanisms& of) { return rows_of(of.with); },
              summaries_document())
          .add(
              "without",
              [](const Mechanisms& of) {
                std::vector<WithoutLine> lines;
                for (const Without& without : of.without) lines.push_back({of.with, without});
                return lines;
              },
              mechanism_document(), 1);
  return document;
}

std::string to_csv(const Mechanisms& mechanisms) {
  Json records = Json::array();
  const auto add = [&](const Without& without, std::string_view source, const MovedLine& line) {
    Json record = {{"without", without.mechanism->name}, {"source", source}};
    record.update(moved_document().json(line));
    records.push_back(std::move(record));
  };
  for (const Without& without : mechanisms.without) {
    const WithoutLine line{mechanisms.with, without};
    add(without, "all", line.of_all());
    for (const auto& [source, moved] : line.of_sources()) add(without, source, moved);
  }
  return csv_records({{"records", std::move(records)}}, {"records"});
}

}  // namespace paceline::experiments
