// How far a predicted iteration can be from its stated time: intervals, samples of what is not known,
// and the plans that are best in such samples.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/base/figure.h"
#include "simulator/iteration/sampled_interval.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/prediction/strategy_run.h"

namespace paceline::simulator {

// An iteration in sampled states of the world. Sample i of every plan and strategy of a job is
// taken in the same state, so that their ratios have samples, too.
struct SampledIteration {
  Seconds period;  // as stated
  IterationSpread spread;

  [[nodiscard]] std::vector<Seconds> samples() const;
};

// Whether the request's stragglers are among the ranks, if it has any.
enum class Ranks { alike, differing };

// The interval whose ends have every figure at its fast, or every one at its slow end.
[[nodiscard]] Figure<Seconds> at_ends(JobSettings& settings, const StrategyRun& stated,
                                      Ranks ranks);
// IterationSpread::unhidden of the run.
[[nodiscard]] double unhidden(JobSettings& settings, const StrategyRun& stated, Ranks ranks);
// The spread of the iteration over sampled states. The job must have effects.
[[nodiscard]] IterationSpread spread_of(JobSettings& settings, const StrategyRun& stated,
                                        const TimeSpent& spent, Ranks ranks);

// These do what Predictor::sampled() and Predictor::plans_of_worlds() say, for the run of a plan.
[[nodiscard]] SampledIteration sampled(JobSettings& settings, const StrategyRun& stated);
[[nodiscard]] std::vector<models::Plan> plans_of_worlds(JobSettings& settings,
                                                        const StrategyRun& stated, int count,
                                                        const std::vector<std::string>& only,
                                                        const std::function<bool()>& stop);

}  // namespace paceline::simulator
