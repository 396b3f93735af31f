// The outcome of proving a schedule as JSON, for tools (schema paceline.proof/1, docs/formats.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/base/document.h"
#include "models/collective/verify.h"

namespace paceline::models {

// What was proven of a schedule, for buckets of several numbers of chunks.
struct ScheduleProof {
  std::string schedule;  // name
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  int steps = 0;
  std::vector<std::int64_t> chunk_counts;
  std::int64_t transfers = 0;                // the most of any bucket that was proven
  std::optional<Counterexample> fault = {};  // the first that was found
  std::int64_t fault_chunks = 0;             // chunks of the bucket that has it
};

[[nodiscard]] const Document<ScheduleProof>& proof_document();

}  // namespace paceline::models
