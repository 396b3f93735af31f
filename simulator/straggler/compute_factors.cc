// Tests: tests/simulator/straggler_test.cc.
#include "simulator/straggler/compute_factors.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

// E[X | X > 0] of X normal with mean 1 and standard deviation s:
//   1 + s phi(1/s) / Phi(1/s)
double mean_above_zero(double s) {
  if (s <= 0) return 1;
  const double z = 1 / s;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double share = std::erfc(-z / std::numbers::sqrt2) / 2;
  return 1 + s * density / share;
}

}  // namespace

ComputeFactors::ComputeFactors(const models::Stragglers& stragglers, int ranks, std::uint64_t seed)
    : stragglers_(stragglers), random_(seed), factors_(to_size(ranks), 1.0) {
  const models::ComputeSpread& spread = stragglers.spread;
  if (spread.kind == models::SpreadKind::normal) normal_mean_ = mean_above_zero(spread.parameter);
  for (const auto& [rank, factor] : stragglers.slow_ranks)
    PACELINE_ASSERT(rank >= 0 && rank < ranks && factor > 0, "a slow rank is one of the job");
}

double ComputeFactors::draw() {
  const models::ComputeSpread& spread = stragglers_.spread;
  switch (spread.kind) {
    case models::SpreadKind::constant:
      return 1;
    case models::SpreadKind::normal: {
      double drawn = 0;
      while (drawn <= 0) drawn = 1 + spread.parameter * random_.normal();
      return drawn / normal_mean_;
    }
    case models::SpreadKind::log_normal:
      return std::exp(spread.parameter * random_.normal() -
                      spread.parameter * spread.parameter / 2);
    case models::SpreadKind::empirical:
      return spread.samples[random_.below(spread.samples.size())];
  }
  return 1;
}

std::span<const double> ComputeFactors::next() {
  for (double& factor : factors_) factor = draw();
  for (const auto& [rank, factor] : stragglers_.slow_ranks) factors_[to_size(rank)] *= factor;
  return factors_;
}

double order_statistic(std::vector<double>& values, int wanted) {
  PACELINE_ASSERT(wanted >= 1 && wanted <= static_cast<int>(values.size()),
                  "an order statistic is of one of the values");
  const auto at = values.begin() + (wanted - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace paceline::simulator
