// What `paceline compare` prints.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "calibration/compare/comparison.h"

namespace paceline::cli {

struct ComparedFiles {
  std::string run;
  std::string prediction;
};

// Tables for people; `with_layers` adds one of every layer. Each column of times says whether it is
// measured or predicted.
[[nodiscard]] std::string to_text(const calibration::Comparison& comparison,
                                  const ComparedFiles& files, bool with_layers);
// Schema paceline.comparison/1 (docs/formats.md).
[[nodiscard]] nlohmann::ordered_json to_json(const calibration::Comparison& comparison,
                                             const ComparedFiles& files);

}  // namespace paceline::cli
