// What many simulated iterations say: mean and its standard error, median and 99th percentile.
#pragma once

#include <span>

#include "models/base/units.h"

namespace paceline::simulator {

// A quantile by nearest rank: `value` is the ceil(q N)-th smallest of N values. `low` and `high` are
// order statistics too: the quantile lies between them with a probability of 90 % (binomial, by its
// normal approximation; iterations are taken as independent). They are the ends of the sample where
// it has too few values.
struct Quantile {
  Seconds value;
  Seconds low;
  Seconds high;
};

struct IterationSummary {
  Seconds mean;
  // The standard error by the means of 40 batches of equal length: the covariance of iterations near
  // each other (double buffering, an update that makes its rank late) is then within the batches.
  // Fewer than 80 iterations are taken one by one. The error itself is known to 11 %, which is one
  // part in sqrt(2 x 39).
  Seconds standard_error;
  Quantile p50;
  Quantile p99;
  int iterations = 0;
};

// Needs two iterations. O(N log N).
[[nodiscard]] IterationSummary summary(std::span<const Seconds> iterations);

}  // namespace paceline::simulator
