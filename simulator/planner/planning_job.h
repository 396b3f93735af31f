// What a planner chooses thresholds for, and what it chooses.
#pragma once

#include <optional>
#include <vector>

#include "models/network/work.h"
#include "models/plan/strategy.h"
#include "simulator/cost/compute_time.h"
#include "simulator/planner/bucket_timer.h"
#include "simulator/planner/interval_cost.h"
#include "simulator/planner/stream_clock.h"

namespace paceline::simulator {

// What the user named. An empty field is left to the planner. Sizes are bytes on the wire.
struct ThresholdRequest {
  std::optional<Bytes> fusion = {};    // theta
  std::optional<Bytes> hybrid = {};    // eta
  std::optional<int> group_size = {};  // k
  std::optional<int> segments = {};
  std::optional<int> rings = {};
  std::optional<int> servers = {};
  std::optional<models::ServerPlacement> placement = {};
  std::optional<int> streams = {};
  // Options of the strategies of other systems (models/plan/dispatch.h). Our own strategies use only
  // `through_host`.
  std::optional<Seconds> cycle = {};
  std::optional<models::HorovodDefaults> horovod = {};  // of the version that is named
  std::optional<Bytes> partition = {};
  std::optional<Bytes> credit = {};
  bool through_host = false;
  std::optional<int> server_machines = {};  // servers on machines of their own, this many
  std::optional<models::ServerTransport> transport = {};
  bool unnegotiated = false;         // ranks of Horovod do not agree before a cycle, as in a replay
  std::optional<bool> reshard = {};  // of sharded strategies
  std::optional<int> factors_every = {};  // of K-FAC, whose owners are placed as `placement` says
};

// What thresholds are chosen for.
struct PlanningJob {
  const models::NetworkWork& network;
  int ranks = 1;
  models::WireType wire = models::WireType::fp32;
  StreamClock clock = {};
  StreamClock earliest = {};  // no gradient of any plan is there before; bounds take it
  BucketAside aside = {};     // with what it takes to start an all-reduce
  bool slows = true;          // whether all-reduces slow computation down, as the clock says
  // Messages of one schedule that an engine prepares or follows at most for a way that nobody named,
  // and messages of a plan that the engine of `timed` follows at most (engine/effort.h).
  double most_prepared = 1e5;
  double most_followed = 2e5;
};

// Buckets that take nothing beside their all-reduce.
[[nodiscard]] PlanningJob planning_job(const models::NetworkWork& network, int ranks,
                                       models::WireType wire, const ComputeTimes& compute,
                                       models::Overlap overlap = models::Overlap::wait_free);

// The timer that searches, by the step engine; and the one that times the plan once it is chosen, by
// whatever engine that takes. Both without the launch of a collective, which is a bucket's `aside`.
struct PlanningTimers {
  BucketTimer search;
  std::optional<BucketTimer> timed = {};
};

struct ChosenThresholds {
  models::Thresholds thresholds;
  // Other k, and other numbers of segments, with which the iteration is as long within 0.1 %, each
  // with its best theta; by rising number.
  std::vector<int> alike_groups = {};
  std::vector<int> alike_segments = {};
  // The period as the clock has it, and below which no thresholds of the strategy get. 0 where
  // nothing was searched.
  Seconds period = {};
  Seconds least_period = {};
};

}  // namespace paceline::simulator
