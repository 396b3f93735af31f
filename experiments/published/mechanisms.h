// What each mechanism of the model changes for all published rows: they are predicted once more
// without it.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "experiments/published/result.h"
#include "experiments/published/row_job.h"

namespace paceline::experiments {

struct Mechanism {
  std::string_view name;
  std::string_view what;  // for people: what happens without it
  // Take it away from a cluster, and from the job of a row; null: nothing is to be done there.
  void (*from_cluster)(models::Cluster& cluster) = nullptr;
  void (*from_job)(RowJob& job) = nullptr;
};

// The mechanisms that can be switched off one by one.
[[nodiscard]] std::span<const Mechanism> mechanisms();

// All sources without one mechanism.
struct Without {
  const Mechanism* mechanism = nullptr;
  std::vector<Reproduction> sources;
};

// How many predicted rows of the one are more than 0.5 % from those of the other. Both have the same
// rows.
[[nodiscard]] int rows_moved(std::span<const Reproduction> with,
                             std::span<const Reproduction> without);

}  // namespace paceline::experiments
