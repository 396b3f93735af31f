// The plan whose iteration time is good in bad states of the world, too: the least 95th percentile over
// samples of everything that is not known, as far as this many samples can tell it, in place of the least
// stated time.
//
// All plans have the same samples (common random numbers), so that what slows all of them alike does not
// blur their differences: sample i of a gain is of two plans in one state of the world.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "models/base/figure.h"
#include "models/plan/plan.h"
#include "simulator/prediction/prediction.h"

namespace paceline::simulator {

struct RobustCandidate {
  std::string name;  // for people: "tuned", "hierarchical", "tuned for state 7"
  models::Plan plan;
  SampledIteration time;
};

// The 95th percentile of the samples.
[[nodiscard]] Seconds p95(const SampledIteration& time);

// By how much an iteration is longer than that of the plan, as a share of it: as stated, and the middle
// 90 % of the samples of both in pairs. Where either has latency that streams may hide, the gains with all
// and with nothing of it hidden are in the interval, too (IterationSpread::unhidden). Both have as many
// samples.
struct PairedGain {
  double value = 0;
  double low = 0;
  double high = 0;

  // Whether no gain, or a loss, is in the interval.
  [[nodiscard]] bool includes_none() const { return low <= 0; }
};
[[nodiscard]] PairedGain paired_gain(const SampledIteration& plan, const SampledIteration& over);

// The index of the candidate that is shortest as stated among those whose p95 is not certainly longer
// than the least one: in resamples of the states (the bootstrap, Efron & Tibshirani 1993, ch. 13, of
// both plans in pairs) it is no longer in 5 % or more. Of equals it is the first. Its p95 is no longer
// than that of the candidate that is shortest as stated. There is one candidate at least, and all have
// as many samples. Costs candidates x resamples x samples.
[[nodiscard]] std::size_t most_robust(std::span<const RobustCandidate> candidates);

}  // namespace paceline::simulator
