// A schedule proven for several numbers of chunks: what `paceline verify` prints.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/job/schedule.h"
#include "models/collective/verify_json.h"

namespace paceline::job {

// As typed; an empty text is an option that is not given.
struct ProofOptions {
  std::string schedule;
  ScheduleOptions build;
  std::string chunks;  // of the bucket; by default three counts that exercise the schedule
};

// Is told how many chunks the next bucket has, and the share of the work behind it.
using ProofObserver = std::function<void(std::int64_t chunks, double share)>;

struct ProvenSchedule {
  NamedSchedule named;
  models::ScheduleProof proof;  // up to the first bucket that has a fault
};

// Throws InputError that names the option, also for more ranks or chunks than a workstation proves.
[[nodiscard]] ProvenSchedule prove(const ProofOptions& options, const ProofObserver& observer = {});

}  // namespace paceline::job
