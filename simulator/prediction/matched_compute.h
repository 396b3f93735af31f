// What the throughput of a training job of several ranks says of computation.
//
// Frameworks print the samples per second of a job on a node, with its communication in it. How
// fast a rank computes is then solved for: the rate at which the prediction of the same job, with
// the same strategy, has the throughput that was measured.
#pragma once

#include <optional>

#include "models/base/units.h"
#include "models/plan/strategy.h"
#include "models/profile/profile.h"
#include "simulator/prediction/prediction.h"

namespace paceline::simulator {

// The samples per second of one rank that computes alone, such that the request's job under the
// strategy has a throughput of `samples`, to 1e-9. The request's profile says everything but the
// throughputs and layer times of its network. Throws InputError if no computation is fast enough,
// because communication alone takes longer. About ten iterations are simulated.
[[nodiscard]] PerSecond matched_throughput(const PredictionRequest& request,
                                           const models::Strategy& strategy, PerSecond samples);

// What a job of several ranks takes longer than one rank alone, as models::CalibratedSlowdown has it.
struct MatchedSlowdown {
  double factor = 1;
  std::optional<double> beside_traffic = {};
};

// The slowdown at which the request's job under the strategy has a throughput of `samples`, to 1e-6,
// where the request's profile has the throughput of one rank. What a job loses beyond its exposed
// communication is taken to be lost beside collectives first, up to most_beside, where overlap
// gains next to nothing; and what is left to be lost by all computation. Where the job has no
// collective of kernels beside computation, or its cluster's effects say that collectives take nothing
// from computation, that is all of it.
[[nodiscard]] MatchedSlowdown matched_slowdown(const PredictionRequest& request,
                                               const models::Strategy& strategy, PerSecond samples);

// How many times as long computation takes beside a collective, at most: what the slowest kernel was
// seen to take, batch norm's backward pass beside an all-reduce over NVLink (NVIDIA/nccl#338: 2 to 4
// times; GEMM 1.76 and elementwise kernels 2.5 times in NVIDIA/nccl#1428).
inline constexpr double most_beside = 4;

// The request's profile with one more throughput of its job: at several ranks it is what `samples`
// make of it by one of the functions above. The second is taken where the profile has a throughput
// of the network on one rank at the request's batch and precision. The ends of the interval of
// `samples` become the ends of the calibrated figure. Layer times of the network, which would take
// precedence, are dropped. Throws InputError as above.
[[nodiscard]] models::Profile calibrated_with(const PredictionRequest& request,
                                              const models::Strategy& strategy,
                                              const Figure<PerSecond>& samples);

}  // namespace paceline::simulator
