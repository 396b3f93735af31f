// A job in words: everything that must be equal on all ranks, and in a run that resumes.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/channel/channel.h"
#include "runtime/training/trainer.h"

namespace paceline::runtime {

// Describes the job by lines of "key: value".
[[nodiscard]] std::string job_description(const TrainingRequest& request, int ranks);

// Why a job cannot go on from a checkpoint of the other one: what a checkpoint has in another way; empty if it can. Ranks,
// and how they share weights and sums out, may differ as long as a step takes as many samples.
[[nodiscard]] std::string why_not_resumed(const std::string& theirs, const std::string& ours);
// The ranks of a described job; 0 where the text is none.
[[nodiscard]] std::int64_t ranks_of(const std::string& job);

// What a run does beside its job, in such lines: it is not compared on resume, but decides which
// messages are sent.
[[nodiscard]] std::string run_description(const TrainingRequest& request);

// Throws the same InputError on all ranks if any has another description than rank 0. All ranks
// call it.
void check_same_job(Channel& channel, const std::string& description);

}  // namespace paceline::runtime
