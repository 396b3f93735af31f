// A question (simulator/question/question.h) with all that it names loaded and checked: networks on a
// cluster, with how they are to be predicted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/job/files.h"
#include "cli/job/named_things.h"
#include "cli/job/stated_compute.h"
#include "cli/job/stragglers.h"
#include "models/plan/plan_json.h"
#include "models/plan/strategy.h"
#include "simulator/prediction/prediction.h"
#include "simulator/question/question.h"

namespace paceline::job {

// Values that take the place of what options name, for callers that hold them. A network replaces
// --model, a cluster --cluster, a profile --profile, and a plan --plan.
struct GivenValues {
  std::optional<models::Network> network = {};
  std::optional<models::Cluster> cluster = {};
  std::optional<models::Profile> profile = {};
  std::optional<models::PlanDocument> plan = {};
};

// What a question names, loaded and checked. Predictions refer into it: it must outlive them, and
// must not be moved meanwhile.
struct Job {
  simulator::Question question;         // what it says by itself: batch, precision, thresholds, ...
  std::vector<LoadedNetwork> networks;  // at least one
  models::Cluster cluster;
  std::optional<models::Profile> profile;
  // The plan of --plan, which is then the only one: `strategies` has its strategy and `wires` its
  // wire type. It is not checked against networks and ranks yet: predict_table does so.
  std::optional<models::PlanDocument> plan;
  std::string plan_file;  // that it was read from, or "plan"
  std::vector<models::WireType> wires;
  std::vector<const models::Strategy*> strategies;
  // A table for which nobody names strategies leaves these out, because NCCL has no servers.
  std::vector<const models::Strategy*> without_servers;
  // Whether people would also try layouts of several axes: nobody named strategies or a layout, and GPUs train
  // language models.
  bool tries_layouts = false;
  bool names_strategies = false;  // the user named them, and waits as long as they take
  simulator::TimeBudget time_budget = simulator::TimeBudget::bounded;  // of rows that nobody named
  std::optional<simulator::MonteCarloRequest> stragglers;
  std::uint64_t sampling_seed = simulator::sampling_seed;  // as in simulator::PredictionRequest

  [[nodiscard]] simulator::PredictionRequest request(const LoadedNetwork& network, int ranks,
                                                     models::WireType wire) const;
};

// How a question is loaded.
struct LoadRequest {
  GivenValues given = {};
  // Whether the caller adds strategies to those of the job. It then checks by itself that some of them
  // takes each threshold.
  bool is_added_to = false;
  // Whether the question is about one number of ranks, which stragglers need.
  bool is_of_one_size = false;
};

// Throws InputError that names the option, also where it is a threshold that none of the strategies
// takes.
[[nodiscard]] Job load_job(const simulator::Question& question, const LoadRequest& request = {});

// Whether something times the strategy's all-reduces on the job's cluster: those of a library have a
// calibrated curve, or the library's own model where there are GPUs.
[[nodiscard]] bool is_timed(const models::Strategy& strategy, const Job& job);

// The number of ranks that --ranks names, or that the plan of --plan is for where --ranks is not
// given. Throws InputError that names --ranks if there is neither, or if they do not fit the
// cluster.
[[nodiscard]] int ranks_of(const Job& job);

// The files that a question names, and `outputs`: a command's options by which it writes
// files, and their paths. check_paths() takes them.
struct OutputOption {
  const char* option;
  std::string path;
  FileKind kind;
};
[[nodiscard]] std::vector<GivenPath> given_paths(const simulator::Question& question,
                                                 const std::vector<OutputOption>& outputs = {});

}  // namespace paceline::job
