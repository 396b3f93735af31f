// Tests: tests/cli/tune_test.py (end to end), tests/python/test_predictions.py.
#include "cli/tuning_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/prediction_text.h"
#include "cli/table.h"
#include "cli/why_text.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "models/plan/strategy.h"
#include "models/plan/tuned.h"

namespace paceline::cli {
namespace {

// Buckets that are listed of many: the first, and the last, which no computation hides.
constexpr std::size_t first_listed = 12;
constexpr std::size_t last_listed = 8;

// Whose plan it is, and what sums its buckets.
std::string way_text(const models::Plan& plan) {
  const models::Strategy& strategy = models::strategy(plan.strategy);
  if (models::is_tuned(strategy)) return "";
  if (strategy.library() && !strategy.other)
    return fmt::format(", each by {}'s own all-reduce", plan.strategy);
  return fmt::format(", that of {}", plan.strategy);
}

std::string gain_text(const simulator::PairedGain& gain) {
  return fmt::format("{} ({} to {})", percent(gain.value), percent(gain.low), percent(gain.high));
}

// Whether the plan is worth more than what the best runtime does by itself.
std::string kept_text(const job::Tuning& tuning) {
  const job::RuntimeDefaults* kept = tuning.kept();
  if (kept == nullptr) return "";
  return fmt::format("  keep the defaults of {}: the gain over them is {}, {}\n", kept->runtime,
                     gain_text(kept->gain),
                     kept->gain.includes_none()
                         ? "and that includes none"
                         : fmt::format("less than {}", percent(job::least_worthwhile_gain)));
}

std::string summary_text(const job::Tuning& tuning) {
  const simulator::TunedPlan& tuned = tuning.tuned;
  const std::size_t buckets = tuned.plan.buckets.size();
  std::string text =
      fmt::format("{} on {}: {} ranks, batch {} per rank, {} precision, {} on the wire\n\n",
                  tuning.table.network.work.name, tuning.table.job.cluster.name, tuning.table.ranks,
                  tuning.table.job.question.batch_per_rank,
                  name(tuning.table.job.question.precision), name(tuned.plan.wire));
  text += fmt::format("the best plan: iteration {} ({} to {}, predicted), {} bucket{}{}\n",
                      to_text(tuned.period), to_text(tuning.iteration.low),
                      to_text(tuning.iteration.high), buckets, buckets == 1 ? "" : "s",
                      way_text(tuned.plan));
  text += kept_text(tuning);
  if (tuned.is_optimal)
    text += fmt::format(
        "  proven: no contiguous buckets with any of {} all-reduces are faster in one stream\n",
        tuned.candidates);
  else
    text += fmt::format(
        "  lower bound: {}, so that no plan{} is faster by more than {}\n  not proven to be the "
        "best: {}\n",
        to_text(tuned.least_period), tuned.plan.streams > 1 ? "" : " of one stream",
        percent(1 - tuned.least_period / tuned.period), tuned.why_not);
  if (tuning.by_thresholds) {
    const simulator::StrategyPrediction& row = tuning.table.rows[*tuning.by_thresholds];
    text += fmt::format("  the best by thresholds: {}, {}; that they are thresholds costs {}\n",
                        row.name, to_text(row.iteration.value), percent(tuning.gain_over(row)));
  }
  if (tuning.by_library) {
    const auto& [library, period] = *tuning.by_library;
    text += fmt::format("  the best for {}'s own all-reduce: {}, {} longer (--all-reduce {})\n",
                        name(library), to_text(period), percent(period / tuned.period - 1),
                        name(library));
  }
  std::vector<std::string> defaults;
  for (const job::RuntimeDefaults& its : tuning.defaults) {
    const simulator::StrategyPrediction& row = tuning.table.rows[its.row];
    defaults.push_back(fmt::format("{}'s take {} longer ({}, {})", its.runtime, gain_text(its.gain),
                                   row.name, to_text(row.iteration.value)));
  }
  if (!defaults.empty()) text += fmt::format("  defaults: {}\n", fmt::join(defaults, ", "));
  text += help_text(tuning);
  if (!tuned.left_out.empty()) {
    text += fmt::format(
        "  not tried, because they have too many messages: {}{}\n", tuned.left_out.front(),
        tuned.left_out.size() == 1 ? "" : fmt::format(" and {} more", tuned.left_out.size() - 1));
  }
  for (const std::string& line : tuning.cut_short) text += fmt::format("  {}\n", line);
  return text + "\n";
}

Table buckets_table(const job::Tuning& tuning) {
  const models::Plan& plan = tuning.tuned.plan;
  const models::NetworkWork& network = tuning.table.network.work;
  std::vector<Table::Column> columns = {{"bucket"},
                                        {"gradients"},
                                        {"first", Align::left, 4},
                                        {"size"},
                                        {"all-reduce", Align::left},
                                        {"ready", Align::right, 2},
                                        {"starts", Align::right, 3},
                                        {"ends", Align::right, 1},
                                        {"exposed"}};
  if (tuning.is_explained) columns.insert(columns.end(), {{"next best", Align::left}, {"loses"}});
  Table table(columns);
  for (std::size_t i = 0; i < plan.buckets.size(); ++i) {
    const models::Bucket& bucket = plan.buckets[i];
    const simulator::BucketTravel& times = tuning.travel.buckets[i];
    std::vector<std::string> cells = {fmt::format("{}", i),
                                      fmt::format("{}", bucket.gradient_count),
                                      network.gradients[to_size(bucket.first_gradient)].name,
                                      to_text(plan.bytes(bucket)),
                                      models::described(plan.schedules[to_size(bucket.schedule)]),
                                      to_text(times.ready),
                                      to_text(times.start),
                                      to_text(times.end),
                                      to_text(times.exposed)};
    if (tuning.is_explained) {
      const NextBest other = next_best(tuning, i);
      cells.insert(cells.end(), {other.change, other.loses});
    }
    table.add(cells);
  }
  return table;
}

// In this many columns; with a limit of columns, also without the buckets in the middle where there are
// many.
std::string buckets_text(const job::Tuning& tuning, int width) {
  Table table = buckets_table(tuning);
  const std::size_t left_out =
      width == unlimited_width ? 0 : table.leave_out_middle(first_listed, last_listed);
  const Table::Fitted fitted = table.fitted(width);
  return fitted.text +
         (left_out == 0 ? ""
                        : fmt::format("{} buckets are not listed (--wide lists all)\n", left_out)) +
         fitted.not_shown();
}

Table strategies_table(const job::Tuning& tuning, std::size_t top) {
  Table table({{"strategy", Align::left}, {"wire", Align::left}, {"iteration"}, {"longer by"}});
  for (const simulator::StrategyPrediction& row : tuning.table.rows)
    table.add({row.name, std::string(name(row.plan.wire)), to_text(row.iteration.value),
               signed_percent(tuning.gain_over(row))});
  table.keep_rows(top_of(top, iterations_of(tuning.table), tuning.table.best()));
  return table;
}

std::string strategies_text(const job::Tuning& tuning, std::size_t top) {
  return strategies_table(tuning, top).text() + "\n" + slower_note(top, tuning.table.rows.size()) +
         time_budget_note({&tuning.table, 1}) + library_note({&tuning.table, 1}) +
         setting_text(tuning.table.job) +
         "All times are predicted. `paceline predict` says what "
         "they rest on.\n";
}

}  // namespace

std::string to_text(const job::Tuning& tuning, const job::RobustTuning* robust, bool why, int width,
                    std::size_t top) {
  return fmt::format("{}{}\n{}{}{}", summary_text(tuning), buckets_text(tuning, width),
                     why ? why_text(tuning.tuned.alternatives, tuning.tuned.period, width) : "",
                     robust != nullptr ? robust_text(*robust) : "", strategies_text(tuning, top));
}

std::string to_markdown(const job::Tuning& tuning, bool why, std::size_t top) {
  std::vector<Table> tables = {buckets_table(tuning)};
  if (why) tables.push_back(why_table(tuning.tuned.alternatives, tuning.tuned.period));
  tables.push_back(strategies_table(tuning, top));
  return to_markdown(tables);
}

}  // namespace paceline::cli
