// What the options of `paceline plan-capacity` say of candidates, batches, prices and limits.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/job/job.h"
#include "cli/job/training_run.h"
#include "simulator/capacity/front.h"

namespace paceline::job {

// As typed; an empty text is an option that is not given.
struct CapacityOptions {
  simulator::Question common;  // what all candidates share
  TrainingRunOptions run;      // node_price may be "CLUSTER=PRICE,..."
  std::string clusters;        // by commas
  std::string nics;            // by commas; "own" is the cluster's own
  std::string ranks;           // a list or a range
  std::string nodes;           // likewise, in place of `ranks`
  std::string batch;           // empty: 64
  std::string accumulate;      // "auto": the fewest batches that fit into memory
  std::string global_batch;    // of all ranks, in place of `batch`
  std::string within;          // "12h"
  std::string budget;          // "500 USD", "500"
  std::string efficiency;      // "0.9", "90 %"
  bool cautious = false;
};

// A cluster with its NICs, as the options name them.
struct NamedCluster {
  std::string cluster;
  std::string nic;  // empty: its own

  // "h200-ndr", "aws-p3-16xlarge + roce-100g"
  [[nodiscard]] std::string label() const { return nic.empty() ? cluster : cluster + " + " + nic; }
  bool operator==(const NamedCluster&) const = default;
};

inline constexpr std::size_t most_candidates = 10'000;

// What a rank computes in an iteration: as --batch and --accumulate say it.
struct RankBatch {
  int batch = 1;
  int accumulate = 1;
};

// How the samples of an iteration become those of a rank.
class Batches {
 public:
  std::optional<int> global;  // samples of all ranks in an iteration

  // The batch of each of this many ranks, in as many parts as --accumulate says, or in one where it is
  // to be cut; nothing where a global batch has no equal parts for them.
  [[nodiscard]] std::optional<RankBatch> of(int ranks) const;
  // Whether a batch that does not fit is cut into parts that do: --accumulate auto.
  [[nodiscard]] bool cuts() const { return !accumulate_.has_value(); }
  // The fewest equal parts of at most `largest` samples; nothing if there are none.
  [[nodiscard]] std::optional<RankBatch> cut(const RankBatch& whole, int largest) const;
  // "4096", or "4096 in 2 parts".
  [[nodiscard]] std::string described() const;
  // The batch of a job that is not predicted.
  [[nodiscard]] RankBatch any() const { return {batch_per_rank_, accumulate_.value_or(1)}; }

 private:
  friend Batches parse_batches(const CapacityOptions& options);
  int batch_per_rank_ = 64;
  std::optional<int> accumulate_;
};

// Each throws InputError that names the option.
[[nodiscard]] Batches parse_batches(const CapacityOptions& options);
[[nodiscard]] simulator::Demand parse_demand(const CapacityOptions& options);
// The clusters of --cluster, each with the NICs of --nic.
[[nodiscard]] std::vector<NamedCluster> parse_clusters(const CapacityOptions& options);
// The numbers of ranks, ascending, on a cluster of this many nodes: those of --ranks, or those of full
// nodes that --nodes says. By default 1, 2, 3, 4, 6, 8, 12, ... nodes, up to all of them or to 1,024
// ranks.
[[nodiscard]] std::vector<int> ranks_of_candidates(const CapacityOptions& options, int nodes,
                                                   int ranks_per_node);

// The prices of --node-price: one for all clusters, or CLUSTER=PRICE by commas.
class NodePrices {
 public:
  NodePrices(const std::string& option, const std::vector<NamedCluster>& clusters);
  // The price as --node-price of `paceline cost` takes it. It is empty where the cluster's own price holds.
  [[nodiscard]] std::string of(const NamedCluster& cluster) const;

 private:
  std::string for_all_;
  std::vector<std::pair<std::string, std::string>> by_label_;
};

}  // namespace paceline::job
