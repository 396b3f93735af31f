// Tests: tests/cli/what_if_test.py, tests/cli/serve_test.py (end to end).
#include "cli/job/questions.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cli/job/option_values.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/collective/catalogue.h"

namespace paceline::job {
namespace {

const char* const option = "--what-if";

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts = {""};
  for (const char letter : text) {
    if (letter == by)
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

constexpr double most_times = 1000;

void take_change(const std::string& key, const std::string& value, WhatIfQuestion& question) {
  const std::vector<std::string> known = {"without-slowest", "without-rank", "bandwidth", "latency",
                                          "compute",         "strategy",     "plan"};
  if (std::find(known.begin(), known.end(), key) == known.end())
    throw unknown_name("question", key, known);
  const bool takes_value = key != "without-slowest";
  if (takes_value == value.empty())
    throw InputError(
        fmt::format("{} {}", in_quotes(key), takes_value ? "has no value" : "takes no value"),
        takes_value ? fmt::format("write it as in {}={}", key,
                                  key == "strategy" ? "hierarchical"
                                  : key == "plan"   ? "plan.json"
                                                    : "2")
                    : "leave it out");
  const auto factor = [&value] { return parse_number(value, 1 / most_times, most_times); };
  if (key == "without-slowest") question.without_slowest = true;
  if (key == "without-rank")
    question.without.push_back(static_cast<int>(parse_count(value, 0, models::max_ranks)));
  if (key == "bandwidth") question.bandwidth = factor();
  if (key == "latency") question.latency = factor();
  if (key == "compute") question.compute = factor();
  if (key == "strategy") question.strategy = value;
  if (key == "plan") question.plan = value;
}

WhatIfQuestion parse_question(const std::string& text) {
  WhatIfQuestion question;
  question.text = text;
  std::set<std::string> seen;
  for (const std::string& change : split(text, '+')) {
    const std::size_t equals = change.find('=');
    const std::string key = change.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : change.substr(equals + 1);
    if (!seen.insert(key == "without-rank" ? change : key).second)
      throw InputError(fmt::format("{} is there twice in {}", in_quotes(key), in_quotes(text)),
                       "ask two questions, with a comma between them");
    take_change(key, value, question);
  }
  if (!question.strategy.empty() && !question.plan.empty())
    throw InputError(fmt::format("{} names a strategy and a plan", in_quotes(text)),
                     "leave one of the two out");
  return question;
}

}  // namespace

std::vector<WhatIfQuestion> parse_questions(const std::string& text) {
  return parsing_option(option, [&] {
    std::vector<WhatIfQuestion> questions;
    for (const std::string& part : comma_list(text)) questions.push_back(parse_question(part));
    return questions;
  });
}

WhatIfQuestion parse_better_parts(const std::string& text) {
  std::vector<WhatIfQuestion> questions = parse_questions(text);
  WhatIfQuestion& question = questions.front();
  if (questions.size() > 1 || question.without_slowest || !question.without.empty() ||
      !question.strategy.empty() || !question.plan.empty())
    throw InputError({option}, fmt::format("{} asks about a run", in_quotes(text)),
                     "a prediction takes bandwidth, latency and compute, as in "
                     "bandwidth=2+latency=0.5+compute=1.5");
  return std::move(question);
}

}  // namespace paceline::job
