// All predictions of one network at one number of ranks: what `paceline predict` prints, and of
// which `paceline scale` has one for each number of ranks.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/job/job.h"
#include "cli/job/layout_tuning.h"
#include "cli/job/measured.h"
#include "simulator/prediction/sensitivity.h"

namespace paceline::job {

struct PredictionTable {
  const Job& job;
  const LoadedNetwork& network;
  int ranks = 1;
  std::vector<simulator::StrategyPrediction> rows = {};  // at least one; the best keeps its run
  std::vector<simulator::LeftOut> left_out = {};
  std::vector<std::string> warnings = {};  // what the user should know before he trusts a row
  // The best row on a cluster a part of which is better; empty where nobody asked (add_sensitivity).
  std::vector<simulator::BetterPart> better = {};
  std::vector<LayoutRow> layouts = {};  // to try, too; empty where nobody would

  // Index of the row with the shortest iteration, or the shortest in the mean with stragglers.
  [[nodiscard]] std::size_t best() const;
  // Indices of the other rows whose iteration is within 0.1 % of the best one's: no prediction tells
  // them apart.
  [[nodiscard]] std::vector<std::size_t> tied() const;
};

// What predict_table calls while it makes a table, which may take seconds. Either may be empty.
struct TableObserver {
  // Called when a row is begun, after `done` of `all` rows.
  std::function<void(const models::Strategy& strategy, std::size_t done, std::size_t all)> begin =
      {};
  // Called with each row that is done.
  std::function<void(const simulator::StrategyPrediction& row)> row = {};
};

// A table in parts, which threads may predict at the same time. Each has some rows and a predictor of
// its own, so that no number depends on which thread predicts what.
class TableParts {
 public:
  // Keeps references to the job and the network. Throws InputError if the job's plan is not for this
  // network and these ranks.
  TableParts(const Job& job, const LoadedNetwork& network, int ranks);

  [[nodiscard]] std::size_t count() const;
  // Predicts the rows of one part. Several threads may do so with parts of their own; `observer` then
  // is called by all of them.
  void predict(std::size_t part, const TableObserver& observer = {});
  // The table, once each part was predicted, with the warnings of predict_table(). Throws InputError
  // if no row could be timed. Takes the rows: call it once.
  [[nodiscard]] PredictionTable table();

 private:
  struct Row {
    models::WireType wire;
    const models::Strategy* strategy;
    std::variant<std::monostate, simulator::StrategyPrediction, simulator::LeftOut> outcome = {};
  };
  const Job& job_;
  const LoadedNetwork& network_;
  int ranks_;
  std::vector<Row> rows_;
  std::atomic<std::size_t> begun_{0};
};

// Predicts every strategy at every wire type of the job, or the job's plan. Rows whose memory does not
// fit the device are left out, unless the job ignores memory or compute times are exact: then there is
// no device that computes. Unless the job names its strategies or has a plan, strategies that would take long are
// timed by the step engine or left out (simulator::TimeBudget). A strategy that cannot be timed on so
// many ranks is left out where there are others. Throws InputError if that leaves none, or if the
// job's plan is not for this network and these ranks.
[[nodiscard]] PredictionTable predict_table(const Job& job, const LoadedNetwork& network, int ranks,
                                            const TableObserver& observer = {});

// Predicts the best row with each part of the cluster 1.1 and 2 times as good. A row of a plan that
// the job names keeps its plan. Throws InputError for a cluster with a platform.
void add_sensitivity(PredictionTable& table);

// The warnings of all tables, each once, in their order.
[[nodiscard]] std::vector<std::string> all_warnings(std::span<const PredictionTable> tables);

}  // namespace paceline::job
