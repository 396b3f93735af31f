// What-if answers as a table for people.
#pragma once

#include <string>

#include "calibration/compare/what_if_json.h"
#include "cli/table.h"

namespace paceline::cli {

// How well the DAG reproduces the run, the slowest rank, and a row for each answer with what it rests
// on below.
[[nodiscard]] std::string to_text(const calibration::WhatIfAnswers& answers);

// A row for each question.
[[nodiscard]] Table answers_table(const calibration::WhatIfAnswers& answers);

}  // namespace paceline::cli
