// Tests: tests/simulator/straggler_test.cc.
#include "simulator/straggler/summary.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/base/error.h"
#include "models/base/interval.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

Seconds mean_of(std::span<const Seconds> values) {
  // About the first value, so that equal values have exactly their mean.
  Seconds sum;
  for (const Seconds value : values) sum += value - values.front();
  return values.front() + sum / static_cast<double>(values.size());
}

Seconds batch_means_error(std::span<const Seconds> values) {
  constexpr std::size_t batches_wanted = 40;
  const std::size_t length = std::max<std::size_t>(1, values.size() / batches_wanted);
  std::vector<Seconds> means;
  for (std::size_t first = 0; first + length <= values.size(); first += length)
    means.push_back(mean_of(values.subspan(first, length)));
  const Seconds mean = mean_of(means);
  double squares = 0;
  for (const Seconds batch : means) squares += std::pow((batch - mean).value(), 2);
  const auto batches = static_cast<double>(means.size());
  const Seconds error{std::sqrt(squares / (batches - 1) / batches)};
  constexpr double rounding = 1e-13;
  return error < rounding * mean ? Seconds{0} : error;
}

Quantile quantile(const std::vector<Seconds>& sorted, double q) {
  const auto count = static_cast<double>(sorted.size());
  const auto at = [&](double rank) {
    return sorted[static_cast<std::size_t>(std::clamp(rank, 1.0, count)) - 1];
  };
  const double half = normal_reach * std::sqrt(count * q * (1 - q));
  return {at(std::ceil(q * count)), at(std::floor(q * count - half)),
          at(std::ceil(q * count + half) + 1)};
}

}  // namespace

IterationSummary summary(std::span<const Seconds> iterations) {
  PACELINE_ASSERT(iterations.size() >= 2, "a standard error takes two iterations");
  std::vector<Seconds> sorted(iterations.begin(), iterations.end());
  std::sort(sorted.begin(), sorted.end());
  return {.mean = mean_of(iterations),
          .standard_error = batch_means_error(iterations),
          .p50 = quantile(sorted, 0.5),
          .p99 = quantile(sorted, 0.99),
          .iterations = static_cast<int>(iterations.size())};
}

}  // namespace paceline::simulator
