// What the options --throughput, --node-throughput, --slowdown and --beside-traffic say of
// computation, in place of a profile that somebody would have to write; and what a profile's
// throughputs of several ranks say.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "cli/job/named_things.h"
#include "simulator/question/question.h"

namespace paceline::job {

// The job whose computation is stated.
struct StatedJob {
  std::span<const LoadedNetwork> networks;
  const models::Cluster& cluster;
  models::Precision precision = models::Precision::mixed;
  int batch_per_rank = 1;            // of rates that name no batch
  const models::Strategy& strategy;  // that a job trained with whose throughput was measured
  // The request that predicts a network on this many ranks, with the profile that is being made.
  std::function<simulator::PredictionRequest(const LoadedNetwork& network, int ranks)> request;
};

// Puts what is stated into the profile, which is made where there is none, and solves for
// what throughputs of several ranks say of computation (simulator/prediction/matched_compute.h),
// also those that the profile had. Throws InputError that names the option.
void state_compute(const simulator::StatedCompute& stated, const StatedJob& job,
                   std::optional<models::Profile>& profile);

}  // namespace paceline::job
