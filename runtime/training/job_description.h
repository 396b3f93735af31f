// A job in words: everything that must be equal on all ranks, and in a run that resumes.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "runtime/channel/channel.h"
#include "runtime/training/trainer.h"

namespace paceline::runtime {

// Describes the job by lines of "key: value".
[[nodiscard]] std::string job_description(const TrainingRequest& request, int ranks);

// The first line in which two descriptions differ: "strategy: ring" and "strategy: fused-ring". Two
// empty texts where they are equal.
[[nodiscard]] std::pair<std::string, std::string> first_difference(std::string_view a,
                                                                   std::string_view b);

// Throws the same InputError on all ranks if any has another description than rank 0. All ranks
// call it.
void check_same_job(Channel& channel, const std::string& description);

}  // namespace paceline::runtime
