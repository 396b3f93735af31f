// The options that mean the same in every command, and what they name: a network, a cluster, a
// profile and how they are to be used.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/threshold_options.h"
#include "models/base/error.h"
#include "models/cluster/cluster.h"
#include "models/network/network.h"
#include "models/network/work.h"
#include "models/plan/strategy.h"
#include "models/profile/profile.h"
#include "simulator/iteration/prediction.h"

namespace paceline::cli {

// As typed; empty is "not given".
struct JobOptions {
  std::string model;
  std::string cluster;
  std::string placement;
  std::string ranks;
  std::string batch = "64";
  std::string precision = "mixed";
  std::string wire;
  std::string strategies;
  ThresholdOptions thresholds;
  std::string server_placement;
  std::string overlap;
  std::string profile;
  std::string gradient_scale;
  bool compute_is_exact = false;
  std::string engine = "auto";
};

// A network that a command works on.
struct LoadedNetwork {
  models::NetworkWork work;
  Bytes stored_sample{0};
};

// What the options name, loaded and checked. Move-only: predictions refer into it.
struct Job {
  std::vector<LoadedNetwork> networks;
  models::Cluster cluster;
  std::optional<models::Profile> profile;
  int batch_per_rank = 1;
  models::Precision precision = models::Precision::mixed;
  std::vector<models::WireType> wires;
  std::vector<const models::Strategy*> strategies;
  simulator::ThresholdRequest thresholds;
  std::optional<models::Overlap> overlap;
  bool compute_is_exact = false;  // as of simulator::PredictionRequest
  double gradient_scale = 1;      // by which the networks' gradients are already multiplied
  simulator::EngineKind engine = simulator::EngineKind::automatic;
  std::optional<simulator::MonteCarloRequest> stragglers;

  [[nodiscard]] simulator::PredictionRequest request(const LoadedNetwork& network, int ranks,
                                                     models::WireType wire) const;
};

// Declares the options of a job on a command. `options` must outlive the parse.
void add_job_options(Command& command, JobOptions& options);
// Throws InputError that names the option.
[[nodiscard]] Job load_job(const JobOptions& options);

// Refuses a path to write that cannot be written or is a file of the job. Throws InputError.
void check_output_of(const JobOptions& job, const char* option, const std::string& path);

// Of a zoo name or a YAML file. Throw InputError.
[[nodiscard]] models::Network load_layers(const std::string& name_or_file);
[[nodiscard]] LoadedNetwork load_network(const std::string& name_or_file);
[[nodiscard]] models::Cluster load_cluster(const std::string& name_or_file);
// The same with its ranks placed as --placement says, if that is not empty.
[[nodiscard]] models::Cluster load_cluster(const std::string& name_or_file,
                                           const std::string& placement);

// The profile that --profile names, or else the one that the cluster names; none for "none".
[[nodiscard]] std::optional<models::Profile> load_profile(const std::string& option,
                                                          const models::Cluster& cluster);

// Declares --placement, --profile on a command.
void add_placement_option(Command& command, std::string& placement);
void add_profile_option(Command& command, std::string& profile);

// A number of ranks that fits the cluster. Throws InputError that names --ranks.
[[nodiscard]] int parse_ranks(const std::string& text, const models::Cluster& cluster);

// Of gradients where --wire is not given: FP16 for mixed precision, else FP32.
[[nodiscard]] models::WireType default_wire(models::Precision precision);

// A whole number from 1 to `most`; nothing if there is no text. Throws InputError that names the
// option.
[[nodiscard]] std::optional<int> optional_count(const char* option, const std::string& text,
                                                int most);

// The parts of "a,b,c". Empty parts are an InputError.
[[nodiscard]] std::vector<std::string> comma_list(const std::string& text);

// Runs `parse`; an InputError that it throws is said to come from `option`.
template <class F>
decltype(auto) parsing_option(const char* option, F parse) {
  try {
    return parse();
  } catch (const InputError& error) {
    throw error.at({option});
  }
}

}  // namespace paceline::cli
