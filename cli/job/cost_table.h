// What a training run takes with every strategy: what `paceline cost` prints.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "cli/job/prediction_table.h"
#include "cli/job/training_run.h"
#include "models/base/document.h"
#include "simulator/iteration/time_to_train.h"

namespace paceline::job {

// One strategy, and one wire type where the job names several.
struct CostRow {
  std::string name;
  std::vector<const simulator::StrategyPrediction*> phases;  // its iteration in each phase
  simulator::TimeToTrain time;
  simulator::Expenses expenses;
  bool by_library_model = false;  // as in StrategyPrediction
};

struct CostTable {
  CostTable() = default;
  CostTable(CostTable&&) = default;
  CostTable(const CostTable&) = delete;

  models::TrainingRun run;
  int ranks = 1;
  // The jobs of phases that differ, and their predictions; a phase may share those of another.
  std::deque<Job> jobs;
  std::deque<PredictionTable> tables;
  std::vector<std::size_t> table_of_phase;
  std::vector<CostRow> rows;                 // at least one
  std::vector<simulator::LeftOut> left_out;  // of any phase
  std::vector<std::string> warnings;

  [[nodiscard]] const Job& job(std::size_t phase) const {
    return tables[table_of_phase[phase]].job;
  }
  // Index of the row of the shortest time, and of those that no prediction tells from it: as in
  // PredictionTable.
  [[nodiscard]] std::size_t best() const;
  [[nodiscard]] std::vector<std::size_t> tied() const;
};

// Called before each row of each table that is made.
using CostObserver = std::function<void(const std::string& phase, const models::Strategy& strategy,
                                        double share_done)>;

struct CostRequest {
  CostObserver observer = {};
  GivenValues given = {};
  // Changes each job once it is loaded, before anything is predicted.
  std::function<void(Job&)> adjust = {};
  // Only one row is made: that of the shortest time among those that fit into the device's memory, or
  // among all if none fits. All others are predicted without their intervals, which takes a third of the time.
  bool only_best = false;
};

// Predicts the run. The question is that of all phases, except for what a phase says itself. Throws
// InputError as load_job and predict_table do, and for what a phase says with its file and line.
[[nodiscard]] CostTable cost_table(const simulator::Question& question,
                                   const TrainingRunOptions& run, const CostRequest& request = {});

[[nodiscard]] const Document<CostTable>& cost_document();

}  // namespace paceline::job
