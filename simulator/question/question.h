// A question as people ask it: this network on that cluster, with these numbers.
//
// It is a value. To ask about something else is to copy it and to set another member. A name of a
// network, a cluster or a profile may be a file, too; whoever answers loads it (cli/job/job.h). The table
// of its fields is question_fields.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/base/precision.h"
#include "models/cluster/cluster.h"
#include "models/network/work.h"
#include "models/plan/plan.h"
#include "models/plan/strategy.h"
#include "models/profile/profile.h"
#include "simulator/engine/engine_kind.h"
#include "simulator/planner/planning_job.h"
#include "simulator/prediction/prediction.h"

namespace paceline::simulator {

// A rate of training that was measured.
struct StatedRate {
  PerSecond rate;                 // samples
  std::optional<int> batch = {};  // of a rank; none: the question's
  bool operator==(const StatedRate&) const = default;
};

// What is known of computation, in place of a profile.
struct StatedCompute {
  std::vector<StatedRate> throughput;         // of one rank alone, at several batches
  std::optional<StatedRate> node_throughput;  // of one full node that trains
  std::optional<double> slowdown;             // of a rank among several, times as long as one alone
  std::optional<double> beside_traffic;  // while a collective is on its way, times as long again
};

// How ranks differ, and whom an iteration waits for, as typed: what the texts mean depends on the
// number of ranks. An empty text is not given.
struct StragglerTexts {
  std::string spread;
  std::string slow_ranks;
  std::string slow_nodes;
  std::string backup;
  std::string iterations;
  std::string seed;
};

// The strategies that are asked for; none are named: those that a table has by itself.
struct AskedStrategies {
  bool all = false;  // all that run on the cluster
  std::vector<const models::Strategy*> named = {};
  bool others = false;  // models of other systems, too

  // Whether the user named each of them, and waits as long as they take.
  [[nodiscard]] bool are_named() const { return !named.empty(); }
  [[nodiscard]] bool are_chosen_here() const { return !all && named.empty(); }
};

// The samples or tokens that all ranks compute in an iteration.
struct GlobalBatch {
  std::int64_t count = 1;
  bool is_of_tokens = false;  // else of samples

  // Throws InputError where the tokens are no whole number of samples, or where a sample has none (0).
  [[nodiscard]] std::int64_t samples(std::int64_t tokens_of_sample) const;
  bool operator==(const GlobalBatch&) const = default;
};
// "512", or "4Mi tokens" (also k, M, Ki). Throws InputError.
[[nodiscard]] GlobalBatch parse_global_batch(std::string_view text);

struct Question : PredictionOptions {
  std::vector<std::string> networks;
  std::string cluster;
  std::string placement;  // a name, slots, or a file of slots; empty: the cluster's own
  std::string nic;        // in place of the cluster's; empty: the cluster's own
  std::string profile;    // empty: the cluster's own; "none": none
  std::string ranks;      // a number, or several where a curve is asked for; the cluster limits it
  std::optional<int> nodes;  // full ones, in place of `ranks`
  AskedStrategies strategies;
  std::string plan;  // a file; in place of strategies and thresholds
  std::optional<std::int64_t> sequence;
  std::optional<GlobalBatch> global_batch;  // it takes the place of `accumulate`
  std::vector<models::WireType> wires;      // none: the precision's own
  StatedCompute compute;
  std::optional<double> compute_efficiency;                 // in place of the device's
  std::optional<models::Stack> stack;                       // in place of the cluster's
  std::optional<models::AttentionKernel> attention_kernel;  // in place of the device's
  double gradient_scale = 1;   // by which the elements of every gradient are multiplied
  bool ignore_memory = false;  // whether jobs are timed that the device's memory does not hold
  std::string what_if;         // by which links and devices are other than the cluster's
  StragglerTexts stragglers;
};

// The question with the batches of an iteration in place of its global batch, at one number of ranks. Throws
// InputError where that is no multiple of a batch of all ranks.
[[nodiscard]] Question with_batches(Question question, int ranks);

// What the question asks of a network on a cluster with a profile, which may be null, at one number of
// ranks and with one wire type. The request refers to the network, the cluster and the profile. Throws
// InputError where a global batch is no multiple of a batch of all ranks.
[[nodiscard]] PredictionRequest request_for(const Question& question,
                                            const models::NetworkWork& network, Bytes stored_sample,
                                            const models::Cluster& cluster,
                                            const models::Profile* profile, int ranks,
                                            models::WireType wire);

}  // namespace paceline::simulator
