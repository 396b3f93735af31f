// Clusters that could train a network, side by side: what `paceline plan-capacity` prints.
//
// A candidate is a number of ranks of a cluster with its own or other NICs, and trains with the
// strategy that is fastest there: its row is the one that `paceline cost` stars for the same job.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/job/capacity_options.h"
#include "cli/job/cost_table.h"
#include "models/base/document.h"
#include "simulator/capacity/front.h"
#include "simulator/capacity/known_figures.h"

namespace paceline::job {

struct CapacityCandidate {
  std::size_t cluster = 0;  // index in Capacity::clusters
  int ranks = 1;
  int nodes = 1;
  simulator::Question question;  // with which `paceline cost` makes the same table
  CostTable cost;                // of one row
  simulator::Outcome outcome;

  [[nodiscard]] const CostRow& row() const { return cost.rows.front(); }
  [[nodiscard]] const Job& job() const { return cost.job(0); }
};

// Candidates of one cluster that cannot be compared, for one reason.
struct NoCandidate {
  std::size_t cluster = 0;
  std::vector<int> ranks;  // ascending
  std::string why;
  std::string remedy;  // may be empty
};

// A strategy that some candidates were not compared by.
struct NotCompared {
  std::string name;
  std::vector<std::size_t> candidates;  // indices, ascending
  std::string why;
  std::string remedy;
};

// A number of ranks and its efficiency.
struct EfficientRanks {
  int ranks = 1;
  int nodes = 1;
  double efficiency = 0;
};

// How far a cluster's efficiency reaches, and what NIC would take it farther.
struct EfficiencyReach {
  std::size_t cluster = 0;
  // The most ranks, and the next larger number, of which the first holds the efficiency that is asked
  // for and the second does not. Where all hold it there is no second, and where none does, no first.
  std::optional<EfficientRanks> holds;
  std::optional<EfficientRanks> falls;
  bool is_exact = false;  // the two are a node apart, or a rank where ranks do not fill a node
  bool is_again = false;  // a candidate of more ranks holds it again
  // The largest candidate on several nodes; none where all are on one.
  std::optional<EfficientRanks> largest;
  BytesPerSecond own;  // bandwidth of all NICs of a node
  // The least bandwidth of a node's NICs with which the largest candidate holds it, to 1 %.
  std::optional<BytesPerSecond> needed;
  std::string why_not;               // no bandwidth was found
  double efficiency_at_needed = 0;   // of the largest candidate
  double efficiency_at_fastest = 0;  // with the most bandwidth that was tried
};

// The answer's interval as if the figures of a group were known.
struct Narrowing {
  simulator::FigureGroup group = simulator::FigureGroup::compute;
  Figure<double> interval;  // of the answer's cost in USD, or of its time in s
  double share = 0;         // of the logarithm of high over low that goes, from 0 to 1
};

struct Capacity {
  std::vector<NamedCluster> clusters;
  std::vector<CapacityCandidate> candidates;  // by cluster, then by ranks
  std::vector<NoCandidate> left_out;
  std::vector<NotCompared> not_compared;  // of each strategy and reason
  std::vector<std::size_t> front;         // indices of candidates, by ascending time
  simulator::Demand demand;
  std::optional<int> global_batch;
  std::optional<std::size_t> answer;     // nothing is asked, or no candidate does it
  std::optional<std::size_t> nearest;    // where no candidate does it
  std::vector<EfficiencyReach> reaches;  // of each cluster, if an efficiency is asked for
  std::vector<Narrowing> narrowings;     // of the answer, the most first
  std::vector<std::string> warnings;

  [[nodiscard]] std::string label(const CapacityCandidate& candidate) const {
    return clusters[candidate.cluster].label();
  }
};

// What is being done, and which share of the work is behind it. It is called by several threads.
using CapacityObserver = std::function<void(const std::string& what, double share_done)>;

// Predicts all candidates, on this many threads, and answers. Throws InputError if the
// options are wrong, as load_job and cost_table do, and if there is no candidate.
[[nodiscard]] Capacity capacity(const CapacityOptions& options, int threads,
                                const CapacityObserver& observer = {});

[[nodiscard]] const Document<Capacity>& capacity_document();
// One record for each candidate.
[[nodiscard]] std::string to_csv(const Capacity& capacity);
// Time against cost of all candidates with their front, as SVG. The same value gives the same text.
[[nodiscard]] std::string to_svg(const Capacity& capacity);

}  // namespace paceline::job
