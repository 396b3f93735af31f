// Tests: tests/cli/tune_test.py (end to end).
#include "cli/why_text.h"
#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "cli/prediction_text.h"
#include "models/base/parse_units.h"

namespace paceline::cli {
namespace {

// Sums in another order differ by their rounding.
constexpr double rounding = 1e-9;

std::string loses(Seconds before, Seconds period) {
  const Seconds more = period - before;
  if (std::abs(more / before) < rounding) return "nothing";
  return fmt::format("{}{}", more < Seconds{0} ? "-" : "",
                     to_text(Seconds{std::abs(more.value())}));
}

std::string slow_ranks_text(const models::Stragglers& stragglers) {
  std::string text;
  for (const auto& [rank, factor] : stragglers.slow_ranks)
    text += fmt::format("{}{}={}", text.empty() ? ", slow ranks " : ",", rank, factor);
  return text;
}

std::string all_reduces(const simulator::PlanChange& change) {
  std::vector<std::string> words;
  for (const simulator::PlanChange::Part& part : change.parts)
    words.push_back(fmt::format("{} by {}", part.gradients, models::described(part.all_reduce)));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

std::string described(const simulator::PlanChange& change) {
  switch (change.kind) {
    case simulator::ChangeKind::all_reduce:
      return models::described(change.parts.front().all_reduce);
    case simulator::ChangeKind::merged:
      return "merged with the next";
    case simulator::ChangeKind::cut:
      return fmt::format("cut after {}", change.parts.front().gradients);
    case simulator::ChangeKind::ends_earlier:
      return "one gradient less";
    case simulator::ChangeKind::ends_later:
      break;
  }
  return "one gradient more";
}

NextBest next_best(const job::Tuning& tuning, std::size_t bucket) {
  const auto& all = tuning.tuned.alternatives;
  if (bucket >= all.size() || all[bucket].empty()) return {"-", "-"};
  const simulator::Alternative& best = all[bucket].front();
  return {described(best.change), loses(tuning.tuned.period, best.period)};
}

Table why_table(const std::vector<std::vector<simulator::Alternative>>& of_buckets,
                Seconds period) {
  Table table({{.title = "bucket"},
               {.title = "instead", .align = Align::left},
               {.title = "gradients by all-reduce", .align = Align::left, .wraps = true},
               {.title = "iteration"},
               {.title = "loses"},
               {.title = "share"}});
  for (std::size_t i = 0; i < of_buckets.size(); ++i) {
    for (const simulator::Alternative& other : of_buckets[i])
      table.add({fmt::format("{}", i),
                 other.change.kind == simulator::ChangeKind::all_reduce ? "another all-reduce"
                                                                        : described(other.change),
                 all_reduces(other.change), to_text(other.period), loses(period, other.period),
                 signed_percent(other.period / period - 1)});
  }
  return table;
}

std::string why_text(const std::vector<std::vector<simulator::Alternative>>& of_buckets,
                     Seconds period, int width, std::size_t most) {
  Table table = why_table(of_buckets, period);
  std::vector<Seconds> periods;
  for (const auto& of_bucket : of_buckets)
    for (const simulator::Alternative& other : of_bucket) periods.push_back(other.period);
  if (periods.empty()) return "";
  std::vector<std::size_t> rows(periods.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  if (most < rows.size()) {
    std::ranges::stable_sort(rows, {}, [&](std::size_t row) { return periods[row]; });
    const std::size_t left_out = rows.size() - most;
    rows.resize(most);
    table.keep_rows(rows);
    return fmt::format(
        "what each bucket would lose by other choices, all others as they are\n\n{}\n{} choices "
        "that lose "
        "as much or more are not listed (--wide lists all)\n",
        table.fitted(width).text, left_out);
  }
  std::string alike;
  for (std::size_t i = 0; i < of_buckets.size(); ++i) {
    for (const simulator::Alternative& other : of_buckets[i]) {
      if (!other.alike.empty())
        alike += fmt::format("  bucket {}: {}\n", i, fmt::join(other.alike, ", "));
    }
  }
  return fmt::format(
      "what each bucket would lose by other choices, all others as they are\n\n{}\n{}",
      table.fitted(width).text,
      alike.empty() ? "" : fmt::format("all-reduces that are as fast as the plan's:\n{}\n", alike));
}

std::string help_text(const job::Tuning& tuning) {
  if (tuning.better.empty()) return "";
  const simulator::BetterPart& best = simulator::most_helpful(tuning.better);
  return fmt::format("  what would help most: {}, {:g} times as good: {} (with this plan)\n",
                     name(best.part), best.factor, percent(1 - best.least() / tuning.tuned.period));
}

std::string robust_text(const job::RobustTuning& robust) {
  const simulator::RobustCandidate& chosen = robust.candidates[robust.robust];
  const std::string& runtime = robust.runtimes().name;
  Table table({{"  robust", Align::left},
               {"plan", Align::left},
               {"iteration"},
               {"95th percentile"},
               {"buckets"}});
  const auto add = [&](const char* what, const simulator::RobustCandidate& plan) {
    table.add({fmt::format("  {}", what), plan.name, to_text(plan.time.period),
               to_text(p95(plan.time)), fmt::format("{}", plan.plan.buckets.size())});
  };
  add("the best as stated", robust.best());
  // Where the gain of the most robust plan is not certain, that is another plan.
  const bool is_least = p95(chosen.time) <= p95(robust.best().time);
  add(is_least ? "the most robust" : "the most robust gain", chosen);
  add("the runtime's default", robust.runtimes());
  const std::string gain = fmt::format("{} ({} to {})", percent(robust.gain.value),
                                       percent(robust.gain.low), percent(robust.gain.high));
  std::string text = fmt::format(
      "{}  of {} plans in {} sampled states of computation, links and waiting ranks (seed {})\n",
      table.text(), robust.candidates.size(), chosen.time.spread.factors.size(),
      chosen.time.spread.seed);
  if (robust.stragglers)
    text += fmt::format("  iteration: the mean with compute times {}{}\n",
                        robust.stragglers->stragglers.spread.text,
                        slow_ranks_text(robust.stragglers->stragglers));
  const double unhidden =
      std::max(chosen.time.spread.unhidden, robust.runtimes().time.spread.unhidden);
  if (unhidden > rounding)
    text += fmt::format(
        "  how much latency streams hide from each other is a state, too: up to {} longer with "
        "none\n",
        percent(unhidden));
  text += robust.keeps_default()
              ? fmt::format("  {} is kept: the gain over it is {}, and that includes none\n",
                            runtime, gain)
              : fmt::format("  {} is taken: the gain over {} is {}, state by state\n", chosen.name,
                            runtime, gain);
  if (!robust.is_complete) text += "  stopped: more time may find a better plan\n";
  return text + "\n";
}

}  // namespace paceline::cli
