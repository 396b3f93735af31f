// Tests: tests/cli/check_test.py (end to end).
#include "cli/check_text.h"

#include <fmt/core.h>

#include "models/base/parse_units.h"

namespace paceline::cli {
namespace {

using calibration::Check;
using calibration::CheckedCollective;
using calibration::CheckedPart;

void add_row(Table& table, const CheckedPart& part) {
  table.add(
      {part.part, to_text(part.expected.value),
       fmt::format("{} - {}", to_text(part.expected.low), to_text(part.expected.high)),
       to_text(part.measured),
       part.low < part.high ? fmt::format("{} - {}", to_text(part.low), to_text(part.high)) : "",
       part.expected.value > Seconds{0} ? fmt::format("{:.2f} x", part.ratio()) : "",
       std::string(name(part.verdict)), part.file});
}

std::string pace_text(const CheckedCollective& collective) {
  return fmt::format(
      "{}: the largest size is as if links had {:.3g} of their bandwidth, and the "
      "smallest takes {:.3g} times as long as expected\n",
      collective.file, collective.bandwidth, collective.sizes.front().ratio());
}

// Tokens of a rank and the share of the peak, where the network reads any.
std::string rate_text(const Check& check) {
  if (!check.expected || !check.expected->utilization) return "";
  const simulator::Utilization& expected = *check.expected->utilization;
  const auto of = [&](const char* which, double share) {
    return fmt::format("{}: {:.4g} tokens/s a rank, MFU {:.1f} %\n", which,
                       share * expected.tokens_of_rank.value(), 100 * share * expected.mfu);
  };
  return of("expected", 1) + (check.iteration ? of("measured", 1 / check.iteration->ratio()) : "");
}

std::string section(const char* title, const std::string& lines) {
  return lines.empty() ? "" : fmt::format("\n{}:\n{}", title, lines);
}

}  // namespace

Table parts_table(const Check& check) {
  Table table({{"part", Align::left},
               {"expected"},
               {"interval", Align::right, 1},
               {"measured"},
               {"90 % of it", Align::right, 3},
               {"ratio"},
               {"verdict", Align::left},
               {"file", Align::left, 2}});
  if (check.iteration) add_row(table, *check.iteration);
  for (const CheckedPart& part : check.parts) add_row(table, part);
  for (const CheckedCollective& collective : check.collectives)
    for (const CheckedPart& size : collective.sizes) add_row(table, size);
  return table;
}

std::string to_text(const job::CheckAnswer& answer, int width) {
  const Check& check = answer.check;
  std::string text = answer.job.empty() ? "" : answer.job + "\n" + rate_text(check) + "\n";
  if (check.judged() != nullptr) {
    const Table::Fitted fitted = parts_table(check).fitted(width);
    text += fitted.text + fitted.not_shown();
  }
  std::string paces;
  for (const CheckedCollective& collective : check.collectives)
    if (collective.is_slow()) paces += "  " + pace_text(collective);
  text += section("pace of collectives", paces);
  std::string differences;
  for (const std::string& difference : check.differences) differences += "  " + difference + "\n";
  text += section("not as the cluster says", differences);
  std::string explanations;
  for (const calibration::Explanation& one : check.explanations)
    explanations += fmt::format(
        "  {}{}: {} ({}, {})\n", to_text(one.time),
        check.gap > Seconds{0}
            ? fmt::format(" of {} ({:.0f} %)", to_text(check.gap), 100 * (one.time / check.gap))
            : "",
        one.part, one.how, one.file);
  text += section(check.gap > Seconds{0} ? "what explains the gap" : "what an iteration loses",
                  explanations);
  std::string likely;
  for (const calibration::Likely& one : check.likely)
    likely += fmt::format("  {}: {}\n    look: {}\n", one.what, one.because, one.look);
  text += section("what it looks like", likely);
  std::string next;
  for (const std::string& advice : check.advice) next += "  " + advice + "\n";
  text += section("next", next);
  for (const std::string& remark : answer.remarks) text += fmt::format("\nnote: {}", remark);
  if (!answer.remarks.empty()) text += "\n";
  return text + "\n" + check.verdict() + "\n";
}

}  // namespace paceline::cli
