// How long the iterations of a measured run would be if something about it were different: without
// its slowest rank, with other links, with faster devices, with another plan.
//
// The iteration DAG of the run's plan gets the durations that were measured (rank_times.h): layers of
// every rank, all-reduces of the rank that came last, and what lies between. Then some of these are
// replaced. The DAG with what was measured should have the measured iteration; what it misses is the
// residual, and is kept in every answer:
//
//   iteration = measured iteration + (period with durations replaced - period with those measured)
//
// What nobody measured, such as all-reduces on links of twice the bandwidth, comes from a model, which
// the run itself corrects: each all-reduce by its own measured / predicted where the buckets stay, and
// by that of all of them together where they do not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/timeline/rank_times.h"
#include "simulator/iteration/dag.h"

namespace paceline::calibration {

// What the run's DAG is made of.
struct MeasuredRun {
  models::TracedJob job;
  std::vector<models::RankTimes> ranks;    // of all ranks, or of rank 0 alone
  std::vector<models::BucketUse> buckets;  // medians; transfers as in models::RunTimes
  Seconds iteration;                       // the median of what was measured
  int iterations = 0;                      // that were measured
  bool has_all_ranks = false;

  // The rank whose passes and update take longest; the first of them.
  [[nodiscard]] int slowest() const;
};

// Throws InputError that names `file` unless the timeline is of a run, with a forward pass and with
// iterations that start one after the other. `times` may have no ranks: then those of the timeline's
// rank stand for it alone, and its transfers have in them what it waited for others.
[[nodiscard]] MeasuredRun measured_run(const models::TracedTimeline& traced,
                                       const models::RunTimes& times, const std::string& file);

// A plan as a model times it: the parts of each bucket of job.buckets.
struct ModelledPlan {
  models::TracedJob job;
  std::vector<simulator::BucketTimes> buckets;
};

struct Scenario {
  std::string name;          // as it was asked for: "bandwidth=2"
  std::vector<int> without;  // ranks, whose places are taken by ranks like the others
  double compute = 1;        // how many times as fast layers and updates are
  // What travels, as a model times it in the scenario. None: as measured.
  std::optional<ModelledPlan> plan = {};
};

struct WhatIf {
  std::string name;
  Seconds dag;        // the period with durations replaced
  Seconds iteration;  // with the residual
  double gain =
      0;  // the share of the measured iteration that is saved; negative where it is longer
  std::vector<std::string> rests_on;
};

// The period of the DAG with the durations that were measured.
[[nodiscard]] Seconds reproduced(const MeasuredRun& run);

// `own` is the run's plan as the same model times it as it ran; it must be there if the scenario has
// a plan. Throws InputError if a rank is left out that the run does not have, or all are.
[[nodiscard]] WhatIf what_if(const MeasuredRun& run, const std::optional<ModelledPlan>& own,
                             const Scenario& scenario);

}  // namespace paceline::calibration
