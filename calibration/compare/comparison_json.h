// A comparison as JSON, for tools (docs/formats.md).
#pragma once

#include <string>

#include "calibration/compare/comparison.h"
#include "models/base/document.h"

namespace paceline::calibration {

// A comparison with the files that it is of, as the user named them.
struct ComparedFiles {
  std::string run;
  std::string prediction;
};
struct ComparisonOfFiles {
  const Comparison& comparison;
  const ComparedFiles& files;
};

// A task that one side does not have is null there.
[[nodiscard]] const Document<ComparisonOfFiles>& comparison_document();

}  // namespace paceline::calibration
