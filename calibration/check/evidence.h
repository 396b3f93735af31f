// The measurements that a user gives of a job and a cluster, and the expectation that they are held against.
#pragma once

#include <string>
#include <vector>

#include "calibration/fit/spread.h"
#include "calibration/import/imported.h"
#include "calibration/import/traced_steps.h"
#include "models/base/precision.h"
#include "models/cluster/cluster.h"
#include "models/collective/catalogue.h"
#include "models/plan/plan.h"
#include "models/plan/strategy.h"
#include "models/profile/profile.h"
#include "simulator/prediction/prediction_request.h"

namespace paceline::calibration {

// One measurement each, with the file that it was read from.
struct LoggedRun {
  std::string file;
  ImportedIterations iterations;
};
struct TracedRun {
  std::string file;
  TracedSteps steps;
};
struct MeasuredCollective {
  std::string file;
  std::string what;  // "all_reduce_perf, in place, float sum"
  models::Collective collective = models::Collective::all_reduce;
  int ranks = 2;
  models::WireType type = models::WireType::fp32;
  Count nodes = {};               // hosts
  std::vector<SizeSpread> times;  // by the bytes that nccl-tests counts, ascending; at least one
};
struct SeenMachine {
  std::string file;
  ImportedMachine machine;
};
struct MeasuredProfile {
  std::string file;  // or "this cluster"
  models::Profile profile;
};
struct Evidence {
  std::vector<MeasuredProfile> profiles = {};
  std::vector<LoggedRun> runs = {};
  std::vector<TracedRun> traces = {};
  std::vector<MeasuredCollective> collectives = {};
  std::vector<SeenMachine> machines = {};

  // Whether it has iterations, which a job is needed for.
  [[nodiscard]] bool has_iterations() const { return !runs.empty() || !traces.empty(); }
};

// The expectation. Without a job, only collectives, messages and machines are checked.
struct Expectation {
  const models::Cluster& cluster;
  const models::Profile* profile = nullptr;  // may be null
  std::string nccl_version = {};             // empty: the newest
  const simulator::PredictionRequest* job = nullptr;
  const models::Strategy* strategy = nullptr;  // of the job
  const models::Plan* plan = nullptr;          // in place of the strategy's own; may be null
};

}  // namespace paceline::calibration
