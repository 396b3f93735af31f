// Tests: tests/simulator/matched_compute_test.cc.
#include "simulator/iteration/matched_compute.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "simulator/cost/root.h"

namespace paceline::simulator {
namespace {

using models::Profile;

// The request's profile, or an empty one, without what says how long the network computes at the
// request's precision.
Profile without_compute(const PredictionRequest& request) {
  Profile profile = request.profile != nullptr ? *request.profile
                                               : Profile{.name = "calibration",
                                                         .cluster = request.cluster.name,
                                                         .device = request.cluster.device.name,
                                                         .origin = ""};
  const auto is_networks = [&](const auto& entry) {
    return entry.network == request.network.name && entry.precision == request.precision;
  };
  std::erase_if(profile.throughputs, is_networks);
  std::erase_if(profile.layers, is_networks);
  std::erase_if(profile.slowdowns, is_networks);
  return profile;
}

models::CalibratedThroughput throughput_of(const PredictionRequest& request,
                                           const Figure<PerSecond>& samples) {
  return {request.network.name, request.precision, request.batch_per_rank, samples};
}

Figure<PerSecond> trial(PerSecond rate) {
  return Figure<PerSecond>::exact(rate, Provenance::calibrated, "trial");
}

Seconds iteration_with(const Profile& profile, const PredictionRequest& request,
                       const models::Strategy& strategy) {
  PredictionRequest with = request;
  with.profile = &profile;
  return Predictor(with).iteration(strategy);
}

// Samples of all ranks in an iteration.
double samples_in(const PredictionRequest& request) {
  return static_cast<double>(request.ranks) * static_cast<double>(request.batch_per_rank) *
         static_cast<double>(request.accumulate);
}

InputError too_fast(const PredictionRequest& request, const models::Strategy& strategy,
                    PerSecond samples, Seconds least) {
  const PerSecond most = samples_in(request) / least;
  return {fmt::format("{} of {} ranks are more than {} allows", to_text(samples), request.ranks,
                      strategy.name),
          fmt::format("communication alone takes {} of an iteration there, which leaves at most {}",
                      to_text(least), to_text(most))};
}

// The factor on computation at which the iteration is the wanted one. `iteration` gives its length
// for a factor.
double matched_factor(const PredictionRequest& request, const models::Strategy& strategy,
                      PerSecond samples, const std::function<Seconds(double)>& iteration) {
  const Seconds wanted = samples_in(request) / samples;
  const auto excess = [&](double factor) { return iteration(factor) / wanted - 1; };
  double slowest = 1;
  while (excess(slowest) < 0) slowest *= 2;
  double fastest = 0.5 * slowest;
  constexpr double least = 1e-4;
  while (excess(fastest) > 0) {
    fastest *= 0.5;
    if (fastest < least * slowest) throw too_fast(request, strategy, samples, iteration(fastest));
  }
  constexpr double close = 1e-12;
  return root(excess, fastest, slowest, close);
}

// `of` of the value and of the ends of its interval. An end that communication forbids is left out:
// the value stands in its place.
template <class Q>
Figure<Q> ends_of(const Figure<PerSecond>& samples, const std::function<Q(PerSecond)>& of) {
  const Q value = of(samples.value);
  const auto end = [&](PerSecond rate) {
    if (rate == samples.value) return value;
    try {
      return of(rate);
    } catch (const InputError&) {
      return value;
    }
  };
  return {value, end(samples.low), end(samples.high), samples.provenance, samples.source};
}

}  // namespace

PerSecond matched_throughput(const PredictionRequest& request, const models::Strategy& strategy,
                             PerSecond samples) {
  Profile profile = without_compute(request);
  profile.throughputs.insert(profile.throughputs.begin(),
                             throughput_of(request, trial(PerSecond{1})));
  // The rate of a rank if the iteration were nothing but computation.
  const PerSecond least = samples / static_cast<double>(request.ranks);
  const double factor = matched_factor(request, strategy, samples, [&](double compute) {
    profile.throughputs.front().samples = trial(least / compute);
    return iteration_with(profile, request, strategy);
  });
  return least / factor;
}

double matched_slowdown(const PredictionRequest& request, const models::Strategy& strategy,
                        PerSecond samples) {
  PACELINE_ASSERT(request.profile != nullptr, "the profile has the throughput of one rank");
  Profile profile = *request.profile;
  std::erase_if(profile.slowdowns, [&](const models::CalibratedSlowdown& entry) {
    return entry.network == request.network.name && entry.precision == request.precision;
  });
  profile.slowdowns.insert(profile.slowdowns.begin(),
                           {request.network.name, request.precision,
                            Figure<double>::exact(1, Provenance::calibrated, "trial")});
  const auto iteration = [&](double factor) {
    profile.slowdowns.front().factor =
        Figure<double>::exact(factor, Provenance::calibrated, "trial");
    return iteration_with(profile, request, strategy);
  };
  return matched_factor(request, strategy, samples, iteration);
}

Profile calibrated_with(const PredictionRequest& request, const models::Strategy& strategy,
                        const Figure<PerSecond>& samples) {
  const auto is_alone = [&](const models::CalibratedThroughput& entry) {
    return entry.network == request.network.name && entry.precision == request.precision &&
           entry.batch_per_rank == request.batch_per_rank && entry.ranks == 1;
  };
  Profile profile = request.profile != nullptr ? *request.profile : without_compute(request);
  std::erase_if(profile.layers, [&](const models::CalibratedLayer& layer) {
    return layer.network == request.network.name && layer.precision == request.precision;
  });
  PredictionRequest with = request;
  with.profile = &profile;
  if (request.ranks == 1) {
    std::erase_if(profile.throughputs, is_alone);
    profile.throughputs.insert(profile.throughputs.begin(), throughput_of(request, samples));
    return profile;
  }
  std::erase_if(profile.slowdowns, [&](const models::CalibratedSlowdown& entry) {
    return entry.network == request.network.name && entry.precision == request.precision;
  });
  const std::string source = fmt::format("{} of {} ranks with {}: {}", to_text(samples.value),
                                         request.ranks, strategy.name, samples.source);
  if (std::any_of(profile.throughputs.begin(), profile.throughputs.end(), is_alone)) {
    Figure<double> factor = ends_of<double>(
        samples, [&](PerSecond rate) { return matched_slowdown(with, strategy, rate); });
    std::swap(factor.low, factor.high);
    factor.source = source;
    profile.slowdowns.push_back(
        {request.network.name, request.precision, std::move(factor), request.ranks});
    return profile;
  }
  Figure<PerSecond> rate = ends_of<PerSecond>(
      samples, [&](PerSecond of_job) { return matched_throughput(with, strategy, of_job); });
  rate.source = source;
  profile.throughputs.push_back(throughput_of(request, std::move(rate)));
  profile.throughputs.back().solved_from = request.ranks;
  return profile;
}

}  // namespace paceline::simulator
