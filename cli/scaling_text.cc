// Tests: tests/cli (end to end), tests/python/test_predictions.py.
#include "cli/scaling_text.h"

#include <fmt/format.h>

#include <set>
#include <utility>
#include <vector>

#include "cli/prediction_notes.h"
#include "cli/prediction_text.h"
#include "cli/table.h"

namespace paceline::cli {
namespace {

// One line for each number of ranks, one column for each strategy and wire type.
Table points_table(const job::Job& job, std::span<const job::PredictionTable> tables,
                   std::size_t top) {
  std::vector<Table::Column> columns = {{"ranks"}};
  for (const models::WireType wire : job.wires) {
    for (const models::Strategy* strategy : job.strategies)
      columns.push_back({fmt::format("{} {}", strategy->name, name(wire))});
  }
  std::vector<std::size_t> column_of;  // of each row of the table that was read last
  std::set<std::size_t> used;          // columns with a cell
  Table rows(std::move(columns));
  for (const job::PredictionTable& table : tables) {
    std::vector<std::string> cells = {fmt::format("{}", table.ranks)};
    const std::size_t best = table.best();
    // Rows are in the order of the columns, without those that were left out.
    std::size_t i = 0;
    column_of.clear();
    for (const models::WireType wire : job.wires) {
      for (const models::Strategy* strategy : job.strategies) {
        if (i == table.rows.size() || table.rows[i].name != strategy->name ||
            table.rows[i].plan.wire != wire) {
          cells.emplace_back("-");
          continue;
        }
        column_of.push_back(cells.size());
        used.insert(cells.size());
        cells.push_back(fmt::format("{}{:.0f} /s {:>7}", i == best ? "* " : "",
                                    table.rows[i].throughput.value(),
                                    percent(table.rows[i].efficiency)));
        ++i;
      }
    }
    rows.add(std::move(cells));
  }
  if (tables.empty()) return rows;
  std::vector<std::size_t> kept = {0};
  if (top == 0) {
    kept.insert(kept.end(), used.begin(), used.end());
    rows.keep_columns(kept);
    return rows;
  }
  for (const std::size_t row : top_of(top, iterations_of(tables.back()), tables.back().best()))
    kept.push_back(column_of[row]);
  rows.keep_columns(kept);
  return rows;
}

}  // namespace

std::string points_text(const job::Job& job, std::span<const job::PredictionTable> tables,
                        int width, std::size_t top) {
  return points_table(job, tables, top).blocks(width);
}

std::string points_markdown(const job::Job& job, std::span<const job::PredictionTable> tables,
                            std::size_t top) {
  return points_table(job, tables, top).markdown();
}

std::string curve_text(const job::Job& job, std::span<const job::PredictionTable> tables, int width,
                       std::size_t top, bool provenance) {
  std::string text = fmt::format(
      "{} on {} ({}), batch {} {}, {} precision: throughput and efficiency\n\n",
      job.networks.front().work.name, job.cluster.name, job.cluster.device.name,
      job.question.batch_per_rank, per_ranks(job.question.layout), name(job.question.precision));
  text += points_text(job, tables, width, top);
  text += fmt::format(
      "\n* the most samples per second of its number of ranks; efficiency is against p0 = {} "
      "rank{} "
      "with the best plan of the same strategy\n",
      tables.front().rows.front().baseline_ranks,
      tables.front().rows.front().baseline_ranks == 1 ? "" : "s");
  text += setting_text(job);
  text += time_budget_note(tables);
  text += library_note(tables);
  text += slower_note(top, tables.back().rows.size());
  text += fmt::format("\nAll times are predicted (engine: {}). They rest on:\n",
                      name(job.question.engine));
  return text + basis_note(job, tables.front().rows.front().compute_source, provenance);
}

}  // namespace paceline::cli
