// The order in which a stage of a pipeline takes its passes (Narayanan 2021, 2.2; Megatron-LM's schedules).
//
// With p stages of one chunk, stage i begins with p - i - 1 forward passes, then takes a forward and a backward
// pass in turn, and ends with the backward passes that are left. With v chunks a stage takes its batches in groups of p, each group
// through chunk after chunk, and begins with 2 (p - i - 1) + (v - 1) p forward passes. For m batches whose passes
// take the same time on all stages, and no time between them, an iteration takes
// (1 + (p - 1) / (v m)) times as long as one without waiting.
#pragma once

#include <vector>

#include "models/layout/layout.h"

namespace paceline::models {

struct StagePass {
  bool is_backward = false;
  int chunk = 0;  // of the stage, from 0
  int batch = 0;

  bool operator==(const StagePass&) const = default;
};

// The passes of `batches` batches on a stage: check_layout() holds.
[[nodiscard]] std::vector<StagePass> stage_order(const Layout& layout, int stage, int batches);

// The most batches whose activations of a chunk a stage keeps at once, summed over its chunks.
[[nodiscard]] int most_in_flight(const Layout& layout, int stage, int batches);

}  // namespace paceline::models
