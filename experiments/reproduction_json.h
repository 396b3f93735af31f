// Reproductions as JSON (docs/formats.md).
#pragma once

#include <span>
#include <string>

#include "experiments/reproduction.h"

namespace paceline::experiments {

// Schema paceline.reproduction/2.
[[nodiscard]] std::string to_json(const Reproduction& reproduction);
// Schema paceline.reproductions/1: those of all sources, and the summary of all rows.
[[nodiscard]] std::string to_json(std::span<const Reproduction> reproductions);

// Schema paceline.mechanisms/1: the summary of all rows with every mechanism, and without each.
[[nodiscard]] std::string to_json(std::span<const Reproduction> with,
                                  std::span<const Without> without);
// The same as comma-separated values: a record for each mechanism and each source that it moves, and
// one for all sources together.
[[nodiscard]] std::string to_csv(std::span<const Reproduction> with,
                                 std::span<const Without> without);

}  // namespace paceline::experiments
