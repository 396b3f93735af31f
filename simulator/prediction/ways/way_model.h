// Models of the ways to travel: how long their plans take where an engine alone does not say it.
//
// A way has a class here that overrides what differs from buckets that travel by schedules. Its tasks in
// the DAG, where they are not those of an all-reduce, stand beside it (served_tasks.h, k_fac_tasks.h);
// its costs are in simulator/cost.
#pragma once

#include <string>
#include <vector>

#include "models/cluster/cluster.h"
#include "models/network/work.h"
#include "models/plan/plan.h"
#include "simulator/cost/compute_time.h"
#include "simulator/iteration/bucket_times.h"
#include "simulator/iteration/sketch.h"
#include "simulator/iteration/timing_method.h"
#include "simulator/planner/bucket_timer.h"
#include "simulator/planner/planning_job.h"
#include "simulator/prediction/prediction_options.h"

namespace paceline::simulator {

struct PredictorSetting;

// A plan of a network on a cluster, at one number of ranks and one bound of the figures. Keeps
// references.
struct PlanAt {
  const models::NetworkWork& network;
  const models::Cluster& cluster;
  const PredictionOptions& options;
  const models::Plan& plan;
  TimingMethod method;
  PredictorSetting& setting;
};

class WayModel {
 public:
  virtual ~WayModel() = default;

  // The times of each bucket, with its all-reduce timed as if it were alone. Where other buckets travel
  // beside it, that time only orders buckets, so that the planner's engine is good enough. Where ranks
  // start buckets at their own times, it is not used. The planner's engine also takes the place of a
  // flow engine that would follow too many messages.
  [[nodiscard]] virtual std::vector<BucketTimes> times(const PlanAt& at) const;
  // A text that says what timed the all-reduces: "flow engine".
  [[nodiscard]] virtual std::string timed_by(const PlanAt& at) const;
  // These compute times with what the plan's system adds to layers and the update.
  [[nodiscard]] virtual ComputeTimes with_tasks(const PlanAt& at, ComputeTimes compute) const;
  // The compute times of a rank that computes alone, with all that the plan adds to them.
  [[nodiscard]] virtual ComputeTimes alone(const PlanAt& at) const;
  // For how long a bucket keeps its stream, beside these compute times.
  [[nodiscard]] virtual Seconds on_stream(const BucketTimes& bucket,
                                          const ComputeTimes& alone) const;
  // The sketch that gives the iteration time in sampled states, with these compute times and buckets.
  [[nodiscard]] virtual IterationSketch sketch(const PlanAt& at, const ComputeTimes& alone,
                                               const std::vector<BucketTimes>& buckets) const;
  // Makes what a bucket sends this many times as long.
  virtual void scale_communication(BucketTimes& bucket, double factor) const;
  // The bytes of an all-reduce that moves as much as a bucket does in an iteration.
  [[nodiscard]] virtual Bytes moved(const PlanAt& at, const models::Bucket& bucket) const;
  // Copies into `asked` the thresholds of the plan that hold for the job on any number of ranks.
  virtual void name_thresholds(const models::Plan& plan, ThresholdRequest& asked) const;

 protected:
  // A sketch by periods of the DAG, for iterations with communication between passes.
  [[nodiscard]] IterationSketch sketch_by_curve(const PlanAt& at, const ComputeTimes& alone,
                                                const std::vector<BucketTimes>& buckets) const;
  // Sets the times between packing and unpacking, on more than one rank.
  virtual void set_transfer(const PlanAt& at, const models::Bucket& bucket,
                            const BucketTimer& timer, BucketTimes& times) const;
};

[[nodiscard]] const WayModel& model_of(const models::Plan& plan);

const WayModel& library_model();
const WayModel& served_model();
const WayModel& k_fac_model();
const WayModel& sharded_model();

}  // namespace paceline::simulator
