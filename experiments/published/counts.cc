// Tests: tests/experiments/counts_test.cc.
#include "experiments/published/counts.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/catalogue.h"
#include "models/collective/enumerate.h"
#include "simulator/prediction/prediction.h"

namespace paceline::experiments {
namespace {

// A rank that is set aside sends once and receives once, whatever the others do in between.
double idle_ranks(const RowJob& job) {
  const models::CollectiveAlgorithm& algorithm =
      models::all_reduce_algorithm(job.options.strategy->name);
  const models::Schedule schedule = algorithm.build({.ranks = job.ranks});
  std::vector<int> sends(to_size(job.ranks));
  for (int step = 0; step < schedule.steps(); ++step) {
    models::for_each_transfer(
        schedule, step, models::Span<double>{0, 1},
        [&](const models::Transfer<double>& transfer) { ++sends[to_size(transfer.from)]; });
  }
  const int most = *std::max_element(sends.begin(), sends.end());
  return most <= 2 ? 0 : static_cast<double>(std::count(sends.begin(), sends.end(), 1));
}

}  // namespace

bool is_count(Quantity quantity) {
  return quantity == Quantity::flops_per_parameter || quantity == Quantity::idle_ranks ||
         quantity == Quantity::memory;
}

double count_of(Quantity quantity, const RowJob& job) {
  PACELINE_ASSERT(is_count(quantity), "a count is asked for");
  if (quantity == Quantity::idle_ranks) return idle_ranks(job);
  if (quantity == Quantity::memory)
    return simulator::Predictor(job.request(nullptr))
        .predict(*job.options.strategy)
        .memory.total()
        .value();
  const models::NetworkWork& work = job.network->work;
  return static_cast<double>(work.forward_flops()) / static_cast<double>(work.parameters());
}

}  // namespace paceline::experiments
