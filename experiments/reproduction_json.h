// A reproduction as JSON (schema paceline.reproduction/1, docs/formats.md).
#pragma once

#include <string>

#include "experiments/reproduction.h"

namespace paceline::experiments {

[[nodiscard]] std::string to_json(const Reproduction& reproduction);

}  // namespace paceline::experiments
