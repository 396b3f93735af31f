// The options that mean the same in predict, scale, replay and show plan, and the job that they
// name: networks on a cluster, with how they are to be predicted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/job/files.h"
#include "cli/job/named_things.h"
#include "cli/job/stated_compute.h"
#include "cli/job/stragglers.h"
#include "cli/job/thresholds.h"
#include "models/plan/plan_json.h"
#include "models/plan/strategy.h"
#include "simulator/iteration/prediction.h"

namespace paceline::job {

// As typed; an empty text is an option that is not given.
struct JobOptions {
  std::string model;
  std::string cluster;
  std::string placement;
  std::string nic;  // in place of the cluster's
  std::string ranks;
  std::string batch = "64";
  std::string sequence;
  std::string accumulate;
  std::string precision = "mixed";
  std::string wire;
  std::string strategies;
  bool others = false;  // --others: models of other systems, too
  // Whether the caller adds strategies to those of the job. It then checks by itself that some of them
  // takes each threshold.
  bool is_added_to = false;
  ThresholdOptions thresholds;
  std::string server_placement;
  std::string overlap;
  std::string plan;
  std::string baseline;
  std::string profile;
  StatedComputeOptions compute;
  std::string gradient_scale;
  bool compute_is_exact = false;
  bool ignore_memory = false;  // --ignore-memory
  std::string engine = "auto";
  std::string nccl;     // version of its tables
  std::string what_if;  // "bandwidth=2+latency=0.5+compute=1.5"
};

// Values that take the place of what options name, for callers that hold them. A network replaces
// --model, a cluster --cluster, a profile --profile, and a plan --plan.
struct GivenValues {
  std::optional<models::Network> network = {};
  std::optional<models::Cluster> cluster = {};
  std::optional<models::Profile> profile = {};
  std::optional<models::PlanDocument> plan = {};
};

// What the options name, loaded and checked. Predictions refer into it: it must outlive them, and
// must not be moved meanwhile.
struct Job {
  std::vector<LoadedNetwork> networks;  // at least one
  models::Cluster cluster;
  std::string nic;      // that --nic put in place of the cluster's; may be empty
  std::string what_if;  // by which links and devices are other than the cluster's; may be empty
  std::optional<models::Profile> profile;
  int batch_per_rank = 1;
  int accumulate = 1;  // as in simulator::PredictionRequest
  models::Precision precision = models::Precision::mixed;
  // The plan of --plan, which is then the only one: `strategies` has its strategy and `wires` its
  // wire type. It is not checked against networks and ranks yet: predict_table does so.
  std::optional<models::PlanDocument> plan;
  std::string plan_file;  // that it was read from, or "plan"
  std::vector<models::WireType> wires;
  std::vector<const models::Strategy*> strategies;
  // A table for which nobody names strategies leaves these out, because NCCL has no servers.
  std::vector<const models::Strategy*> without_servers;
  bool names_strategies = false;  // the user named them, and waits as long as they take
  simulator::TimeBudget time_budget = simulator::TimeBudget::bounded;  // of rows that nobody named
  simulator::ThresholdRequest thresholds;
  std::optional<models::Overlap> overlap;
  bool compute_is_exact = false;  // as in simulator::PredictionRequest
  // Whether jobs are timed that the device's memory does not hold.
  bool ignore_memory = false;
  double gradient_scale = 1;  // by which the networks' gradients are already multiplied
  simulator::EngineKind engine = simulator::EngineKind::automatic;
  std::string nccl_version;  // as in simulator::PredictionRequest
  std::optional<simulator::MonteCarloRequest> stragglers;
  std::optional<int> baseline_ranks;                       // as in simulator::PredictionRequest
  std::uint64_t sampling_seed = simulator::sampling_seed;  // likewise

  [[nodiscard]] simulator::PredictionRequest request(const LoadedNetwork& network, int ranks,
                                                     models::WireType wire) const;
};

// Throws InputError that names the option, also where it is a threshold that none of the strategies
// takes.
[[nodiscard]] Job load_job(const JobOptions& options, const GivenValues& given = {});

// Whether something times the strategy's all-reduces on the job's cluster: those of a library have a
// calibrated curve, or the library's own model where there are GPUs.
[[nodiscard]] bool is_timed(const models::Strategy& strategy, const Job& job);

// The same for a prediction at one number of ranks, which may have stragglers.
[[nodiscard]] Job load_job(const JobOptions& options, const StragglerOptions& stragglers,
                           const GivenValues& given = {});

// The number of ranks that --ranks names, or that the plan of --plan is for where --ranks is not
// given. Throws InputError that names --ranks if there is neither, or if they do not fit the
// cluster.
[[nodiscard]] int ranks_of(const JobOptions& options, const Job& job);

// The files that the options of a job name, and `outputs`: a command's options by which it writes
// files, and their paths. check_paths() takes them. Throws InputError that names --model if that is no
// list.
struct OutputOption {
  const char* option;
  std::string path;
  FileKind kind;
};
[[nodiscard]] std::vector<GivenPath> given_paths(const JobOptions& job,
                                                 const std::vector<OutputOption>& outputs = {});

}  // namespace paceline::job
