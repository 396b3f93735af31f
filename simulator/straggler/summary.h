// What many simulated iterations say: mean and its standard error, median and 99th percentile.
#pragma once

#include <span>

#include "models/base/units.h"

namespace paceline::simulator {

// By nearest rank: the ceil(q N)-th smallest of N. low and high are order statistics, too, between
// which the quantile lies with 90 % (binomial, by its normal approximation; iterations taken as
// independent), or the ends of the sample where that has too few values.
struct Quantile {
  Seconds value;
  Seconds low;
  Seconds high;
};

struct IterationSummary {
  Seconds mean;
  // By batch means: 40 batches of equal length, so that the covariance of iterations near each
  // other (double buffering, an update that makes its rank late) is within the batches; of single
  // iterations where there are less than 80. Itself known to one part in sqrt(2 x 39), 11 %.
  Seconds standard_error;
  Quantile p50;
  Quantile p99;
  int iterations = 0;
};

// Needs two iterations. O(N log N).
[[nodiscard]] IterationSummary summary(std::span<const Seconds> iterations);

}  // namespace paceline::simulator
