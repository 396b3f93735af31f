// What a user sees while predictions are made: on a terminal the rows that are done, and which
// strategy is being timed.
#pragma once

#include <string>
#include <vector>

#include "cli/job/prediction_table.h"
#include "cli/progress.h"

namespace paceline::cli {

class PredictionProgress {
 public:
  // For one table. Rows are shown at most `width` columns wide.
  PredictionProgress(const job::Job& job, const job::LoadedNetwork& network, int ranks, int width);

  // The callbacks for predict_table. They refer to this object.
  [[nodiscard]] job::TableObserver observer();
  // Says what else is predicted, once the rows are done.
  void show(const std::string& what) { progress_.show(where_ + ", " + what, 0); }

 private:
  const job::Job& job_;
  std::string where_;
  int width_;
  std::vector<simulator::StrategyPrediction> rows_;
  Progress progress_;
};

}  // namespace paceline::cli
