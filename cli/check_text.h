// The text that `paceline check` prints for people.
#pragma once

#include <string>

#include "cli/job/check.h"
#include "cli/table.h"

namespace paceline::cli {

[[nodiscard]] std::string to_text(const job::CheckAnswer& answer, int width);
// All that was measured beside its expectation, one row each.
[[nodiscard]] Table parts_table(const calibration::Check& check);

}  // namespace paceline::cli
