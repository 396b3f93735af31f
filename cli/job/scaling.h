// A scaling curve: predictions of one network over a range of ranks, what `paceline scale` prints.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cli/job/prediction_table.h"

namespace paceline::job {

// What a curve calls while it is made, which may take seconds. Either may be empty.
struct ScalingStep {
  int ranks = 1;
  const models::Strategy& strategy;
  std::size_t row = 0;  // of `rows` of these ranks
  std::size_t rows = 0;
  double share = 0;  // of the curve that is done
};
struct ScalingObserver {
  // Called when a row of a table is begun.
  std::function<void(const ScalingStep& step)> begin = {};
  // Called with the tables that are done.
  std::function<void(const std::vector<PredictionTable>& tables)> point = {};
};

// The numbers of ranks of "8,16,24", or of "8-2048", which means the first number, its doubles, and
// the last number; of an empty text, from 1 to all that the cluster places. Throws InputError that
// names --ranks.
[[nodiscard]] std::vector<int> parse_rank_range(const std::string& text,
                                                const models::Cluster& cluster);

// Chooses the baseline of a curve where the job names none. Throws InputError if the job has more
// networks than one, or a baseline of more ranks than the first point.
void choose_baseline(Job& job, const std::vector<int>& ranks);

// A table for each number of ranks, whose efficiencies have one baseline: that of the job, which is
// chosen here where it names none. Throws InputError as predict_table() and choose_baseline() do.
[[nodiscard]] std::vector<PredictionTable> scaling_curve(Job& job, const std::vector<int>& ranks,
                                                         const ScalingObserver& observer = {});

}  // namespace paceline::job
