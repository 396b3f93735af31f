// A job in words: everything that must be equal on all ranks, and in a run that resumes.
#pragma once

#include <string>

#include "runtime/channel/channel.h"
#include "runtime/training/trainer.h"

namespace paceline::runtime {

// Describes the job by lines of "key: value".
[[nodiscard]] std::string job_description(const TrainingRequest& request, int ranks);

// What a run does beside its job, in such lines: it is not compared on resume, but decides which
// messages are sent.
[[nodiscard]] std::string run_description(const TrainingRequest& request);

// Throws the same InputError on all ranks if any has another description than rank 0. All ranks
// call it.
void check_same_job(Channel& channel, const std::string& description);

}  // namespace paceline::runtime
