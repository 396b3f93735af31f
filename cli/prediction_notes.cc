// Tests: tests/cli (end to end), tests/golden.
#include "cli/prediction_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cli/job/basis.h"
#include "cli/output.h"
#include "models/base/parse_units.h"
#include "simulator/engine/effort.h"

namespace paceline::cli {
namespace {

std::string figure_text(double value, job::BasisUnit unit) {
  switch (unit) {
    case job::BasisUnit::seconds:
      return to_text(Seconds{value});
    case job::BasisUnit::bytes_per_second:
      return to_text(BytesPerSecond{value});
    case job::BasisUnit::share:
      return fmt::format("{:.3g} %", 100 * value);
    case job::BasisUnit::factor:
      return fmt::format("{:.3g} x", value);
    case job::BasisUnit::ratio:
      return fmt::format("{:.3g}:1", value);
    case job::BasisUnit::number:
      break;
  }
  return fmt::format("{:.3g}", value);
}

// Lines, each once with the numbers of ranks that it holds for, in the order of their first use.
class LinesByRanks {
 public:
  void say(std::string line, int ranks) {
    auto known = std::find_if(lines_.begin(), lines_.end(),
                              [&](const auto& other) { return other.first == line; });
    if (known == lines_.end())
      known = lines_.emplace(lines_.end(), std::move(line), std::vector<int>{});
    if (known->second.empty() || known->second.back() != ranks) known->second.push_back(ranks);
  }
  [[nodiscard]] std::size_t size() const { return lines_.size(); }
  [[nodiscard]] std::string text(bool with_ranks) const {
    std::string text;
    for (const auto& [line, ranks] : lines_) {
      text += line;
      if (with_ranks) text += fmt::format(" ({} ranks)", fmt::join(ranks, ", "));
      text += "\n";
    }
    return text;
  }

 private:
  std::vector<std::pair<std::string, std::vector<int>>> lines_;
};

// Strategies that are left out for the same reason, by all their names.
std::vector<std::pair<std::string, simulator::LeftOut>> left_out_alike(
    std::span<const simulator::LeftOut> left_out) {
  std::vector<std::pair<std::string, simulator::LeftOut>> alike;
  for (const simulator::LeftOut& row : left_out) {
    const auto found = std::ranges::find_if(alike, [&](const auto& other) {
      return other.second.why == row.why && other.second.remedy == row.remedy;
    });
    if (found == alike.end())
      alike.emplace_back(row.name, row);
    else
      found->first += ", " + row.name;
  }
  return alike;
}

}  // namespace

// Where the question is about better links: which rows they may make slower.
std::string links_note(const job::PredictionTable& table) {
  if (table.better.empty() && table.job.question.what_if.empty()) return "";
  std::vector<std::pair<std::string, std::string>> rows_by_reason;
  for (const simulator::StrategyPrediction& row : table.rows) {
    if (row.better_links_may_slow.empty()) continue;
    auto known = std::find_if(rows_by_reason.begin(), rows_by_reason.end(), [&](const auto& other) {
      return other.first == row.better_links_may_slow;
    });
    if (known == rows_by_reason.end())
      rows_by_reason.emplace_back(row.better_links_may_slow, row.name);
    else
      known->second += ", " + row.name;
  }
  std::string text;
  for (const auto& [reason, rows] : rows_by_reason)
    text += fmt::format("{}: better links may make it slower, for {}\n", rows, reason);
  return text;
}

std::string basis_text(const job::Job& job) {
  std::string text;
  for (const job::BasisLine& line : job::basis_of(job)) {
    if (!line.text.empty()) {
      text += fmt::format("  {:<18} {}\n", line.what, line.text);
      continue;
    }
    const Figure<double>& figure = line.figure;
    const std::string spread = figure.low == figure.high
                                   ? ""
                                   : fmt::format(" ({} to {})", figure_text(figure.low, line.unit),
                                                 figure_text(figure.high, line.unit));
    text += fmt::format("  {:<18} {}{}, {}: {}\n", line.what, figure_text(figure.value, line.unit),
                        spread, name(figure.provenance), figure.source);
  }
  return text;
}

std::string basis_note(const job::Job& job, std::string_view compute_source, bool all) {
  std::string text = fmt::format("  {:<18} {}\n", "compute", compute_source);
  if (all) return text + basis_text(job);
  std::map<std::string_view, int> counts;
  int figures = 0;
  for (const job::BasisLine& line : job::basis_of(job)) {
    if (!line.text.empty()) {
      text += fmt::format("  {:<18} {}\n", line.what, line.text);
      continue;
    }
    ++counts[name(line.figure.provenance)];
    ++figures;
  }
  std::vector<std::string> parts;
  for (const auto& [provenance, count] : counts)
    parts.push_back(fmt::format("{} {}", count, provenance));
  return text +
         fmt::format("  {:<18} {}; --provenance lists them with their intervals and sources\n",
                     fmt::format("{} figures", figures), fmt::join(parts, ", "));
}

std::string time_budget_note(std::span<const job::PredictionTable> tables) {
  LinesByRanks lines;
  const bool is_curve = tables.size() > 1;
  for (const job::PredictionTable& table : tables) {
    for (const simulator::StrategyPrediction& row : table.rows) {
      if (row.not_followed == 0) continue;
      const std::string messages =
          is_curve ? "too many messages"
                   : fmt::format("{:.2g} million messages", row.not_followed / 1e6);
      lines.say(
          fmt::format(
              "{}: timed by the step engine (the flow engine would follow {}; {} asks for that)",
              row.name, messages,
              row.not_followed > simulator::most_followed_when_named
                  ? "--engine flow"
                  : fmt::format("--strategy {}", row.name)),
          table.ranks);
    }
    for (const auto& [names, row] : left_out_alike(table.left_out))
      lines.say(is_curve && row.takes_long
                    ? fmt::format("{}: left out because it would take long; {}", names, row.remedy)
                    : fmt::format("{}: left out: {}; {}", names, row.why, row.remedy),
                table.ranks);
  }
  return lines.text(is_curve);
}

std::string library_note(std::span<const job::PredictionTable> tables) {
  // Rows by name, in the order of their first use.
  std::vector<std::pair<std::string, LinesByRanks>> notes;
  for (const job::PredictionTable& table : tables) {
    for (const simulator::StrategyPrediction& row : table.rows) {
      const bool is_sharded = row.plan.uses<models::ShardUse>() != nullptr;
      if (row.plan.uses<models::Library>() == nullptr && !(is_sharded && row.by_library_model))
        continue;
      auto known = std::find_if(notes.begin(), notes.end(),
                                [&](const auto& other) { return other.first == row.name; });
      if (known == notes.end()) known = notes.insert(notes.end(), {row.name, {}});
      std::string timed_by = row.timed_by;
      if (const std::size_t to = timed_by.find(fmt::format(", scaled to {}", table.ranks));
          tables.size() > 1 && to != std::string::npos)
        timed_by.erase(to + std::string_view(", scaled").size(),
                       fmt::format(" to {}", table.ranks).size());
      known->second.say(fmt::format("{}: {} timed by {}", row.name,
                                    is_sharded ? "collectives" : "all-reduces", timed_by),
                        table.ranks);
    }
  }
  std::string text;
  for (const auto& [name, lines] : notes) text += lines.text(lines.size() > 1);
  return text;
}

}  // namespace paceline::cli
