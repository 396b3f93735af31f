// Reproductions as JSON (docs/formats.md).
#pragma once

#include <span>
#include <string>

#include "experiments/reproduction.h"
#include "models/base/document.h"

namespace paceline::experiments {

[[nodiscard]] const Document<Reproduction>& reproduction_document();

// The reproductions of all sources, and the summary of all rows.
using Reproductions = std::span<const Reproduction>;
[[nodiscard]] const Document<Reproductions>& reproductions_document();

// All sources with every mechanism, and without each.
struct Mechanisms {
  std::span<const Reproduction> with;
  std::span<const Without> without;
};
[[nodiscard]] const Document<Mechanisms>& mechanisms_document();
// The same as comma-separated values: a record for each mechanism and each source that it moves, and
// one for all sources together.
[[nodiscard]] std::string to_csv(const Mechanisms& mechanisms);

}  // namespace paceline::experiments
