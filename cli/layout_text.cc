// Tests: tests/cli/layouts_test.py.
#include "cli/layout_text.h"

#include <fmt/format.h>

#include "cli/table.h"
#include "models/base/parse_units.h"

namespace paceline::cli {

Table layout_table(std::span<const job::LayoutRow> rows, int ranks, bool has_best) {
  Table table({{.title = "  layout", .align = Align::left},
               {.title = "strategy", .align = Align::left},
               {.title = "batch"},
               {.title = "recompute", .align = Align::left},
               {.title = "iteration"},
               {.title = "interval", .least_important = 3},
               {.title = "tokens/s/rank", .least_important = 2},
               {.title = "MFU"},
               {.title = "exchange", .least_important = 4},
               {.title = "bubble", .least_important = 4},
               {.title = "memory"},
               {.title = "front", .align = Align::left, .least_important = 1}});
  for (const job::LayoutRow& row : rows) {
    const simulator::StrategyPrediction& of = row.prediction;
    const models::Layout& layout = row.choice.options.layout;
    const auto share = [&](Seconds part) { return percent(part / of.iteration.value); };
    const std::string axes =
        fmt::format("{}t{}{}{} p{}{} d{}", has_best && &row == rows.data() ? "* " : "  ",
                    layout.tensor, layout.context > 1 ? fmt::format(" c{}", layout.context) : "",
                    layout.expert > 1 ? fmt::format(" e{}", layout.expert) : "", layout.pipeline,
                    layout.chunks > 1 ? fmt::format("x{}", layout.chunks) : "",
                    ranks / layout.ranks_of_sample());
    table.add(
        {axes, of.name,
         fmt::format("{} x {}", row.choice.options.batch_per_rank, row.choice.options.accumulate),
         name(row.choice.options.recompute), to_text(of.iteration.value),
         fmt::format("{} - {}", to_text(of.iteration.low), to_text(of.iteration.high)),
         of.utilization ? fmt::format("{:.0f}", of.utilization->tokens_of_rank.value()) : "",
         of.utilization ? percent(of.utilization->mfu) : "", share(of.spent.exchange),
         share(of.spent.bubble), to_text(of.memory.total()), row.is_on_front ? "yes" : ""});
  }
  return table;
}

namespace {

Table table_of(const job::LayoutTuning& tuning) {
  return layout_table(tuning.rows, tuning.ranks, true);
}

std::string title(const job::LayoutTuning& tuning) {
  return fmt::format("{} on {}: layouts of {} ranks, {} samples of {} tokens an iteration\n\n",
                     tuning.job.networks.front().work.name, tuning.job.cluster.name, tuning.ranks,
                     tuning.global_batch, tuning.job.networks.front().work.sequence);
}

std::string notes(const job::LayoutTuning& tuning) {
  const simulator::FoundLayouts& found = tuning.found;
  std::string text = "\nwhy the first is best\n";
  for (const std::string& line : tuning.why) text += "  " + line + "\n";
  text += fmt::format("{} candidates, {} of them timed; {} could be faster and do not fit\n",
                      found.candidates, found.timed.size(), found.too_large.size());
  text += found.is_proven
              ? std::string("no other candidate is faster: its lower bound is no less\n")
              : fmt::format("stopped early: a candidate that is left takes {} or more\n",
                            to_text(found.least_left));
  return text +
         "t, c, e, p, d: ranks of the axes tensor, context, expert (of those of a stage), pipeline "
         "(x chunks of a stage) and data; "
         "batch: of the ranks of a sample x accumulated\n"
         "exchange, bubble: of the iteration, what ranks of a sample and stages wait for; front: "
         "no layout is as fast with less memory\n"
         "All times are predicted; paceline predict with --tensor, --pipeline ... shows one in "
         "full.\n";
}

}  // namespace

std::string to_text(const job::LayoutTuning& tuning, int width) {
  const Table::Fitted fitted = table_of(tuning).fitted(width);
  return title(tuning) + fitted.text + notes(tuning) + fitted.not_shown();
}

std::string to_markdown(const job::LayoutTuning& tuning) {
  return title(tuning) + table_of(tuning).markdown() + notes(tuning);
}

}  // namespace paceline::cli
