// The strategy of plans that a planner makes bucket by bucket: `paceline tune` writes them, and
// documents name it "tuned".
//
// Each bucket takes the all-reduce of the catalogue that is best for it, whatever the others take.
// There is no rule to make such a plan by without a clock, and so make_plan() refuses it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/plan/plan.h"

namespace paceline::models {

struct Strategy;  // strategy.h

[[nodiscard]] const Strategy& tuned_strategy();
[[nodiscard]] bool is_tuned(const Strategy& strategy);
// The strategy that a plan of these all-reduces is of, however its buckets were chosen: that of the
// library which sums all buckets, or "tuned".
[[nodiscard]] std::string_view strategy_of(std::span<const PlannedSchedule> all_reduces);
// The library that sums all buckets of a plan of the all-reduces of these names; nothing where other
// all-reduces may, too.
[[nodiscard]] std::optional<Library> library_of(std::span<const std::string> all_reduces);

}  // namespace paceline::models
