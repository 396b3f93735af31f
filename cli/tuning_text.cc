// Tests: tests/cli/tune_test.py (end to end), tests/python/test_predictions.py.
#include "cli/tuning_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/prediction_notes.h"
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
constexpr std::size_t first_listed = 4;
constexpr std::size_t last_listed = 3;
// The fastest rows, and the changes that lose least: --why is a screen, and --wide has all.
constexpr std::size_t strategies_shown = 8;
constexpr std::size_t alternatives_shown = 5;

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

std::string job_text(const job::Tuning& tuning) {
  return fmt::format("{} on {}: {} ranks, batch {} {}, {} precision, {} on the wire\n\n",
                     tuning.table.network.work.name, tuning.table.job.cluster.name,
                     tuning.table.ranks, tuning.table.job.question.batch_per_rank,
                     per_ranks(tuning.table.job.question.layout),
                     name(tuning.table.job.question.precision), name(tuning.tuned.plan.wire));
}

std::string words(const job::Advice& advice) {
  const std::size_t buckets = advice.plan.buckets.size();
  if (advice.setting.empty())
    return fmt::format("{} bucket{} of your own", buckets, buckets == 1 ? "" : "s");
  return advice.setting;
}

std::string advice_line(const job::Tuning& tuning, const std::string& runtime) {
  if (const job::Advice* const advice = tuning.advice()) {
    if (advice->setting.empty())
      return fmt::format("send {} by NCCL: iterations of {} (--plan-out FILE writes them)\n",
                         words(*advice), to_text(advice->iteration));
    return fmt::format("set {}: iterations of {}\n", advice->setting, to_text(advice->iteration));
  }
  double most = 0;
  for (const job::Advice& one : tuning.tried) most = std::max(most, one.gain.value);
  return fmt::format("keep the defaults of {}: nothing that was tried gains more than {}\n",
                     runtime, percent(most));
}

// Says in a few lines which change to make, and how much it gains.
std::string advice_text(const job::Tuning& tuning) {
  const job::RuntimeDefaults& defaults = *tuning.yardstick();
  const Figure<Seconds>& iteration = tuning.table.rows[defaults.row].iteration;
  const Seconds least = tuning.tuned.least_period;
  std::string text = advice_line(tuning, defaults.runtime);
  text += fmt::format(
      "  the defaults of {} take {} ({} to {}, predicted); no plan of one stream less than {}\n",
      defaults.runtime, to_text(iteration.value), to_text(iteration.low), to_text(iteration.high),
      to_text(least));
  Table tried({{"  tried", Align::left}, {"is told", Align::left}, {"gains", Align::left}});
  for (const job::Advice& one : tuning.tried)
    tried.add({fmt::format("  {}", name(one.runtime)), words(one), gain_text(one.gain)});
  text += tried.text();
  text += help_text(tuning);
  for (const std::string& line : tuning.cut_short) text += fmt::format("  {}\n", line);
  return text;
}

std::string found_text(const job::Tuning& tuning) {
  const simulator::TunedPlan& tuned = tuning.tuned;
  const std::size_t buckets = tuned.plan.buckets.size();
  std::string text = fmt::format(
      "the best plan: iteration {} ({} to {}, predicted), {} bucket{}{}\n", to_text(tuned.period),
      to_text(tuning.iteration.low), to_text(tuning.iteration.high), buckets,
      buckets == 1 ? "" : "s", way_text(tuned.plan));
  if (tuning.tried.empty()) text += kept_text(tuning);
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
  if (tuning.tried.empty()) text += help_text(tuning);
  if (!tuned.left_out.empty()) {
    text += fmt::format(
        "  not tried, because they have too many messages: {}{}\n", tuned.left_out.front(),
        tuned.left_out.size() == 1 ? "" : fmt::format(" and {} more", tuned.left_out.size() - 1));
  }
  if (tuning.tried.empty())
    for (const std::string& line : tuning.cut_short) text += fmt::format("  {}\n", line);
  return text;
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
  const bool is_whole = width == unlimited_width;
  std::string text = job_text(tuning);
  if (!tuning.tried.empty()) text += advice_text(tuning);
  if (tuning.tried.empty() || why || is_whole) text += found_text(tuning);
  if (robust != nullptr) text += "\n" + robust_text(*robust);
  if (!why && !is_whole) {
    if (top > 0) text += "\n" + strategies_table(tuning, top).text();
    return text + setting_text(tuning.table.job) +
           "All times are predicted; --why says more: the best plan's buckets, and other plans\n";
  }
  const std::size_t shown = top == 0 && !is_whole ? strategies_shown : top;
  const std::string whys = why ? why_text(tuning.tuned.alternatives, tuning.tuned.period, width,
                                          is_whole ? unlimited_rows : alternatives_shown)
                               : "";
  return fmt::format("{}\n{}\n{}{}{}", text, buckets_text(tuning, width), whys,
                     whys.empty() ? "" : "\n", strategies_text(tuning, shown));
}

std::string to_markdown(const job::Tuning& tuning, bool why, std::size_t top) {
  std::vector<Table> tables = {buckets_table(tuning)};
  if (why) tables.push_back(why_table(tuning.tuned.alternatives, tuning.tuned.period));
  tables.push_back(strategies_table(tuning, top));
  return to_markdown(tables);
}

}  // namespace paceline::cli
