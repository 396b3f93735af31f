// paceline show schedules: every algorithm of the catalogue, as Markdown. docs/algorithms.md is
// what this prints (tests/cli).
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"
#include "models/base/to_size.h"
#include "models/collective/catalogue.h"
#include "models/collective/enumerate.h"

namespace paceline::cli {
namespace {

using models::CollectiveAlgorithm;
using models::ScheduleOptions;

std::string options_text(const CollectiveAlgorithm& algorithm) {
  std::vector<std::string> options;
  if (algorithm.takes_group)
    options.emplace_back("`--group` k, ranks of a group or of a row; divides p");
  if (algorithm.takes_segments)
    options.emplace_back("`--segments` S, that a bucket travels in, one behind the other");
  if (algorithm.takes_rings) options.emplace_back("`--rings`, that share the bucket");
  if (algorithm.takes_servers)
    options.emplace_back("`--servers` s, among the ranks and evenly spread");
  std::string text;
  for (const std::string& option : options) text += (text.empty() ? "" : "; ") + option;
  return text.empty() ? "none" : text;
}

// The most that any rank sends, as a share of the bucket.
double most_sent(const models::Schedule& schedule) {
  std::vector<double> sent(to_size(schedule.ranks()), 0.0);
  for (int step = 0; step < schedule.steps(); ++step) {
    for_each_transfer(
        schedule, step, models::Span<double>{0.0, 1.0},
        [&](const models::Transfer<double>& t) { sent[to_size(t.from)] += t.span.size; });
  }
  return *std::max_element(sent.begin(), sent.end());
}

std::string example_row(const CollectiveAlgorithm& algorithm, int ranks) {
  const ScheduleOptions options{.ranks = ranks};
  const models::Schedule schedule = algorithm.build(options);
  const auto form = algorithm.closed_form(options);
  return fmt::format("| {} | {} | {:.6g} n | {} |\n", ranks, schedule.steps(), most_sent(schedule),
                     form ? fmt::format("{:.6g} alpha + {:.6g} n beta + {:.6g} n gamma",
                                        form->alpha, form->beta, form->gamma)
                          : "none");
}

std::string section(const CollectiveAlgorithm& algorithm) {
  std::string text = fmt::format("## {}\n\n", algorithm.name);
  text += fmt::format("- What it does: {}, {}\n", name(algorithm.collective), algorithm.summary);
  text += fmt::format("- Source: {}\n", algorithm.source);
  text += fmt::format("- Options: {}\n", options_text(algorithm));
  text += fmt::format("- Steps: {}\n", algorithm.steps);
  text += fmt::format("- Bytes that a rank sends: {}\n", algorithm.bytes);
  text += algorithm.time.empty() ? fmt::format("- Closed form: none, as {}\n\n", algorithm.exact)
                                 : fmt::format("- Closed form: {}\n- Exact for: {}\n\n",
                                               algorithm.time, algorithm.exact);
  text += "| p | steps | most that one rank sends | closed form |\n|---:|---:|---:|---|\n";
  for (const int ranks : {8, 12, 64}) text += example_row(algorithm, ranks);
  return text;
}

void show_schedules() {
  std::string text =
      "# The collective algorithms\n\n"
      "Printed by `paceline show schedules`; a test holds this file against it.\n\n"
      "p ranks, a bucket of n bytes, alpha seconds per message, beta seconds per byte sent, gamma "
      "seconds per byte reduced; q is the largest power of two that is at most p, m = p/k.\n\n"
      "The closed forms are those of equal ranks with one full-duplex port each and no link "
      "shared; chunks are fractions of the bucket. Where a form is exact, the step engine equals "
      "it to 1e-9 (`tests/agreement/engine_agreement_test.cc`). Its code is in "
      "`models/collective/closed_form.h`. The tables are counted from the schedules with their "
      "default options. Every schedule is proven to be what it promises "
      "(`models/collective/verify.h`, `paceline verify`).\n";
  for (const CollectiveAlgorithm& algorithm : models::collective_catalogue())
    text += "\n" + section(algorithm);
  print("{}", text);
}

}  // namespace

void add_show_schedules(Command& show) {
  show.add_command("schedules", "All collective algorithms and their costs, as Markdown")
      .on_run(show_schedules);
}

}  // namespace paceline::cli
