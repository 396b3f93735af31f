// What a job needs of its device's memory, and how that is said where the device has less.
#pragma once

#include <string>

#include "cli/job/job.h"
#include "models/base/error.h"
#include "models/plan/plan.h"
#include "simulator/prediction/prediction.h"

namespace paceline::job {

struct MemoryNeed {
  Bytes of_rank;
  int largest_batch = 0;  // of a rank, that would fit
  bool fits = true;
};
[[nodiscard]] MemoryNeed memory_need(const simulator::StrategyPrediction& row);
// The plan is one of the network's.
[[nodiscard]] MemoryNeed memory_need(const Job& job, const LoadedNetwork& network,
                                     const models::Plan& plan);

// Whether a job is refused that does not fit. With exact compute times there is no device that computes.
[[nodiscard]] bool checks_memory(const Job& job);

// "a batch of 64 does not fit the 16 GB of a v100: a rank needs 110.4 GB"
[[nodiscard]] std::string too_large_text(const Job& job, const MemoryNeed& need);
// "the largest batch that fits is 3"
[[nodiscard]] std::string largest_batch_text(const MemoryNeed& need);
// The error that refuses a job whose plan, of this strategy, does not fit. Where no batch fits, it says whether
// this one would if blocks were recomputed.
[[nodiscard]] InputError does_not_fit(const Job& job, const LoadedNetwork& network,
                                      const models::Plan& plan, const std::string& strategy);

}  // namespace paceline::job
