// Tests: tests/simulator/matched_compute_test.cc.
#include "simulator/prediction/matched_compute.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

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
  models::CalibratedThroughput throughput{request.network.name, request.precision,
                                          request.batch_per_rank, samples};
  throughput.sequence = request.network.sequence;
  throughput.of = std::make_shared<const models::NetworkWork>(request.network);
  return throughput;
}

Figure<PerSecond> trial(PerSecond rate) {
  return Figure<PerSecond>::exact(rate, Provenance::calibrated, "trial");
}

Figure<double> trial_factor(double factor) {
  return Figure<double>::exact(factor, Provenance::calibrated, "trial");
}

Seconds iteration_with(const Profile& profile, const PredictionRequest& request,
                       const models::Strategy& strategy) {
  PredictionRequest with = request;
  with.profile = &profile;
  return Predictor(with).iteration(strategy);
}

double samples_in(const PredictionRequest& request) {
  return request.samples(request.ranks);
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

// The value of `of` at an end of the interval of `samples`. Where communication forbids that rate,
// this is `of_value`, the value at the stated rate.
template <class T>
T at_end(const Figure<PerSecond>& samples, PerSecond end, const T& of_value,
         const std::function<T(PerSecond)>& of) {
  if (end == samples.value) return of_value;
  try {
    return of(end);
  } catch (const InputError&) {
    return of_value;
  }
}

// Whether the cluster's effects let collectives take something from computation.
bool collectives_may_slow(const PredictionRequest& request) {
  const models::Effects* effects =
      effects_of(request.cluster, request.profile, request.compute_is_exact);
  return effects != nullptr && effects->slowdown.high > 0;
}

// How many times as long computation takes beside a collective, such that the iteration is the wanted
// one or as near to it as it gets; nothing where that does not change the iteration.
std::optional<double> matched_beside(const std::function<Seconds(double)>& iteration,
                                     Seconds wanted) {
  constexpr double visible = 1e-6;
  constexpr double close = 1e-9;
  const Seconds least = iteration(1);
  const Seconds most = iteration(most_beside);
  if (most <= (1 + visible) * least) return std::nullopt;
  if (wanted <= least) return 1;
  if (wanted >= most) return most_beside;
  const auto excess = [&](double beside) { return iteration(beside) / wanted - 1; };
  return root(excess, 1, most_beside, close);
}

// The slowdown of a job of `samples`, with an interval from those at the ends of `samples`.
models::CalibratedSlowdown calibrated_slowdown(const PredictionRequest& request,
                                               const models::Strategy& strategy,
                                               const Figure<PerSecond>& samples,
                                               const std::string& source) {
  const std::function<MatchedSlowdown(PerSecond)> matched = [&](PerSecond rate) {
    return matched_slowdown(request, strategy, rate);
  };
  const MatchedSlowdown value = matched(samples.value);
  const MatchedSlowdown slow = at_end(samples, samples.low, value, matched);
  const MatchedSlowdown fast = at_end(samples, samples.high, value, matched);
  const auto figure = [&](double stated, double low, double high) {
    return Figure<double>{stated, std::min(low, stated), std::max(high, stated), samples.provenance,
                          source};
  };
  models::CalibratedSlowdown slowdown{request.network.name, request.precision,
                                      figure(value.factor, fast.factor, slow.factor),
                                      request.ranks};
  if (value.beside_traffic)
    slowdown.beside_traffic =
        figure(*value.beside_traffic, fast.beside_traffic.value_or(*value.beside_traffic),
               slow.beside_traffic.value_or(*value.beside_traffic));
  return slowdown;
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

MatchedSlowdown matched_slowdown(const PredictionRequest& request, const models::Strategy& strategy,
                                 PerSecond samples) {
  PACELINE_ASSERT(request.profile != nullptr, "the profile has the throughput of one rank");
  Profile profile = *request.profile;
  std::erase_if(profile.slowdowns, [&](const models::CalibratedSlowdown& entry) {
    return entry.network == request.network.name && entry.precision == request.precision;
  });
  profile.slowdowns.insert(profile.slowdowns.begin(),
                           {request.network.name, request.precision, trial_factor(1)});
  MatchedSlowdown found;
  const auto iteration = [&](double factor) {
    models::CalibratedSlowdown& slowdown = profile.slowdowns.front();
    slowdown.factor = trial_factor(factor);
    slowdown.beside_traffic.reset();
    if (found.beside_traffic) slowdown.beside_traffic = trial_factor(*found.beside_traffic);
    return iteration_with(profile, request, strategy);
  };
  if (collectives_may_slow(request)) {
    const Seconds wanted = samples_in(request) / samples;
    const auto beside = [&](double times) {
      found.beside_traffic = times;
      return iteration(1);
    };
    found.beside_traffic = matched_beside(beside, wanted);
  }
  found.factor = matched_factor(request, strategy, samples, iteration);
  return found;
}

Profile calibrated_with(const PredictionRequest& request, const models::Strategy& strategy,
                        const Figure<PerSecond>& samples) {
  const auto is_alone = [&](const models::CalibratedThroughput& entry) {
    return entry.network == request.network.name && entry.precision == request.precision &&
           entry.batch_per_rank == request.batch_per_rank && entry.ranks == 1 &&
           (entry.sequence == 0 || entry.sequence == request.network.sequence);
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
    profile.slowdowns.push_back(calibrated_slowdown(with, strategy, samples, source));
    return profile;
  }
  const std::function<PerSecond(PerSecond)> matched = [&](PerSecond of_job) {
    return matched_throughput(with, strategy, of_job);
  };
  const PerSecond value = matched(samples.value);
  Figure<PerSecond> rate{value, at_end(samples, samples.low, value, matched),
                         at_end(samples, samples.high, value, matched), samples.provenance, source};
  profile.throughputs.push_back(throughput_of(request, std::move(rate)));
  profile.throughputs.back().solved_from = request.ranks;
  return profile;
}

}  // namespace paceline::simulator
