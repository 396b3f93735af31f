// Tests: tests/cli (end to end), tests/python/test_predictions.py.
#include "cli/scaling_text.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "cli/prediction_text.h"
#include "cli/table.h"

namespace paceline::cli {
namespace {

// One line for each number of ranks, one column for each strategy and wire type.
Table points_table(const job::Job& job, std::span<const job::PredictionTable> tables) {
  std::vector<Table::Column> columns = {{"ranks"}};
  for (const models::WireType wire : job.wires) {
    for (const models::Strategy* strategy : job.strategies)
      columns.push_back({fmt::format("{} {}", strategy->name, name(wire))});
  }
  Table rows(std::move(columns));
  for (const job::PredictionTable& table : tables) {
    std::vector<std::string> cells = {fmt::format("{}", table.ranks)};
    const std::size_t best = table.best();
    // Rows are in the order of the columns, without those that were left out.
    std::size_t i = 0;
    for (const models::WireType wire : job.wires) {
      for (const models::Strategy* strategy : job.strategies) {
        if (i == table.rows.size() || table.rows[i].name != strategy->name ||
            table.rows[i].plan.wire != wire) {
          cells.emplace_back("-");
          continue;
        }
        cells.push_back(fmt::format("{}{:.0f} /s {:>7}", i == best ? "* " : "",
                                    table.rows[i].throughput.value(),
                                    percent(table.rows[i].efficiency)));
        ++i;
      }
    }
    rows.add(std::move(cells));
  }
  return rows;
}

}  // namespace

std::string points_text(const job::Job& job, std::span<const job::PredictionTable> tables,
                        int width) {
  return points_table(job, tables).blocks(width);
}

std::string points_markdown(const job::Job& job, std::span<const job::PredictionTable> tables) {
  return points_table(job, tables).markdown();
}

std::string curve_text(const job::Job& job, std::span<const job::PredictionTable> tables,
                       int width) {
  std::string text =
      fmt::format("{} on {} ({}), batch {} per rank, {} precision: throughput and efficiency\n\n",
                  job.networks.front().work.name, job.cluster.name, job.cluster.device.name,
                  job.batch_per_rank, name(job.precision));
  text += points_text(job, tables, width);
  text += fmt::format(
      "\n* the most samples per second of its number of ranks; efficiency is against p0 = {} "
      "rank{} "
      "with the best plan of the same strategy\n",
      tables.front().rows.front().baseline_ranks,
      tables.front().rows.front().baseline_ranks == 1 ? "" : "s");
  text += setting_text(job);
  text += haste_note(tables);
  text += library_note(tables);
  text += fmt::format("\nAll times are predicted (engine: {}). They rest on:\n", name(job.engine));
  text += fmt::format("  {:<18} {}\n", "compute", tables.front().rows.front().compute_source);
  return text + basis_text(job);
}

}  // namespace paceline::cli
