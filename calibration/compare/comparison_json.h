// A comparison as JSON, for tools (schema paceline.comparison/1, docs/formats.md).
#pragma once

#include <string>

#include "calibration/compare/comparison.h"

namespace paceline::calibration {

// The files that a comparison is of, as the user named them.
struct ComparedFiles {
  std::string run;
  std::string prediction;
};

// The whole document. Times are in seconds; a task that one side does not have is null there.
[[nodiscard]] std::string to_json(const Comparison& comparison, const ComparedFiles& files);

}  // namespace paceline::calibration
