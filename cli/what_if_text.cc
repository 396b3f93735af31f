// Tests: tests/cli/what_if_test.py (end to end).
#include "cli/what_if_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "calibration/fit/statistics.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"

namespace paceline::cli {
namespace {

Seconds computing(const models::RankTimes& rank) {
  return rank.passes() + rank.update;
}

// "slowest rank: 3 of 4, 61.2 ms of passes and update; the median rank takes 40.9 ms"
std::string slowest_line(const calibration::MeasuredRun& run) {
  if (!run.has_all_ranks)
    return "the timeline has the times of rank 0 only: record the run again to name the slowest "
           "rank\n";
  std::vector<Seconds> times;
  for (const models::RankTimes& rank : run.ranks) times.push_back(computing(rank));
  const int slowest = run.slowest();
  return fmt::format("slowest rank: {} of {}, {} of passes and update; the median rank takes {}\n",
                     slowest, run.ranks.size(), to_text(times[to_size(slowest)]),
                     to_text(calibration::median(times)));
}

bool is_doubtful(const calibration::WhatIfAnswers& answers) {
  return std::abs(answers.residual()) > calibration::doubtful_residual;
}

}  // namespace

Table answers_table(const calibration::WhatIfAnswers& answers) {
  std::vector<Table::Column> columns = {
      {"what if", Align::left}, {"iteration"}, {"saved"}, {"speed"}};
  if (is_doubtful(answers)) columns.push_back({"doubtful by"});
  Table table(columns);
  for (const calibration::WhatIf& answer : answers.answers) {
    std::vector<std::string> cells = {
        answer.name, to_text(answer.iteration), signed_percent(answer.gain),
        answer.iteration > Seconds{0}
            ? fmt::format("{:.3g} x", answers.run.iteration / answer.iteration)
            : std::string("-")};
    if (is_doubtful(answers)) cells.push_back(signed_percent(answers.residual()));
    table.add(std::move(cells));
  }
  return table;
}

std::string to_text(const calibration::WhatIfAnswers& answers) {
  const calibration::MeasuredRun& run = answers.run;
  std::string text = fmt::format(
      "{} ({}, {} iterations)\nan iteration takes {}, measured; the DAG with the measured "
      "durations "
      "takes {}: {}\n",
      answers.title, answers.file, run.iterations, to_text(run.iteration),
      to_text(answers.reproduced), signed_percent(answers.residual()));
  if (is_doubtful(answers))
    text += fmt::format(
        "so the DAG does not explain this run to {:g} %, and each answer is doubtful by as much\n",
        100 * calibration::doubtful_residual);
  text += slowest_line(run) + "\n";
  text += answers_table(answers).text() +
          "\nAll answers are predicted: the measured iteration, and what the DAG "
          "says the change does to it. They rest on:\n";
  for (const calibration::WhatIf& answer : answers.answers) {
    for (const std::string& basis : answer.rests_on)
      text += fmt::format("  {}: {}\n", answer.name, basis);
    if (answer.rests_on.empty()) text += fmt::format("  {}: nothing is changed\n", answer.name);
  }
  return text;
}

}  // namespace paceline::cli
