// What `paceline compare` prints for people.
#pragma once

#include <string>
#include <vector>

#include "calibration/compare/comparison.h"
#include "calibration/compare/comparison_json.h"
#include "cli/table.h"

namespace paceline::cli {

// The comparison as tables of at most `width` columns. `with_layers` adds a table with a row for each
// layer. Each column of times says whether it is measured or predicted.
[[nodiscard]] std::string to_text(const calibration::Comparison& comparison,
                                  const calibration::ComparedFiles& files, bool with_layers,
                                  int width);

// Returns the tables of to_text(): where the difference comes from, layers if they are asked for, and
// buckets.
[[nodiscard]] std::vector<Table> tables(const calibration::Comparison& comparison,
                                        bool with_layers);

}  // namespace paceline::cli
