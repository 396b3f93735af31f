// Tests: tests/simulator/robust_plan_test.cc.
#include "simulator/prediction/robust_plan.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "models/base/error.h"
#include "models/base/interval.h"
#include "models/base/random.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

constexpr double high_share = 0.95;

// How many sets of states the bootstrap draws, and what it draws them by.
constexpr int resamples = 400;
constexpr std::uint64_t resampling_seed = 95;

// The value that so great a share of the values does not exceed, next to quantile(): the k-th smallest.
double high_value(std::vector<double>& values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(
                                       high_share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::vector<double> numbers(const SampledIteration& time) {
  std::vector<double> all;
  for (const Seconds sample : time.samples()) all.push_back(sample.value());
  return all;
}

// The share of resamples in which the 95th percentile of `one` is no longer than that of `other`.
double share_no_longer(const std::vector<double>& one, const std::vector<double>& other) {
  PACELINE_ASSERT(one.size() == other.size(), "both plans have the same samples");
  Random random(resampling_seed);
  std::vector<double> of_one(one.size());
  std::vector<double> of_other(one.size());
  int count = 0;
  for (int i = 0; i < resamples; ++i) {
    for (std::size_t k = 0; k < one.size(); ++k) {
      const std::size_t state = random.below(one.size());
      of_one[k] = one[state];
      of_other[k] = other[state];
    }
    count += high_value(of_one) <= high_value(of_other) ? 1 : 0;
  }
  return static_cast<double>(count) / resamples;
}

}  // namespace

Seconds p95(const SampledIteration& time) {
  std::vector<double> factors = time.spread.samples();
  std::sort(factors.begin(), factors.end());
  return quantile(factors, high_share) * time.period;
}

PairedGain paired_gain(const SampledIteration& plan, const SampledIteration& over) {
  const std::vector<Seconds> own = plan.samples();
  const std::vector<Seconds> others = over.samples();
  PACELINE_ASSERT(own.size() == others.size(), "both plans have the same samples");
  std::vector<double> gains;
  for (std::size_t i = 0; i < own.size(); ++i) gains.push_back(others[i] / own[i] - 1);
  std::sort(gains.begin(), gains.end());
  PairedGain gain{over.period / plan.period - 1, quantile(gains, interval_tail),
                  quantile(gains, 1 - interval_tail)};
  if (plan.spread.unhidden == 0 && over.spread.unhidden == 0) return gain;
  const double in_order =
      (1 + gain.value) * (1 + over.spread.unhidden) / (1 + plan.spread.unhidden) - 1;
  gain.low = std::min({gain.low, gain.value, in_order});
  gain.high = std::max({gain.high, gain.value, in_order});
  return gain;
}

std::size_t most_robust(std::span<const RobustCandidate> candidates) {
  PACELINE_ASSERT(!candidates.empty(), "there is a candidate");
  std::vector<Seconds> percentiles;
  for (const RobustCandidate& candidate : candidates) percentiles.push_back(p95(candidate.time));
  const auto index_of_least = [](const auto& values, auto less) {
    return to_size(std::min_element(values.begin(), values.end(), less) - values.begin());
  };
  const std::size_t least = index_of_least(percentiles, std::less<>{});
  const std::size_t as_stated =
      index_of_least(candidates, [](const RobustCandidate& a, const RobustCandidate& b) {
        return a.time.period < b.time.period;
      });
  const std::vector<double> of_least = numbers(candidates[least].time);
  std::size_t chosen = least;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!(candidates[i].time.period < candidates[chosen].time.period) ||
        percentiles[i] > percentiles[as_stated])
      continue;
    if (share_no_longer(numbers(candidates[i].time), of_least) >= interval_tail) chosen = i;
  }
  return chosen;
}

}  // namespace paceline::simulator
