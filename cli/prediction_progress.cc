// Tests: tests/cli/progress_test.py (on a pseudo-terminal).
#include "cli/prediction_progress.h"

#include <fmt/core.h>

#include "cli/prediction_text.h"

namespace paceline::cli {

PredictionProgress::PredictionProgress(const job::Job& job, const job::LoadedNetwork& network,
                                       int ranks, int width)
    : job_(job), where_(fmt::format("{} on {} ranks", network.work.name, ranks)), width_(width) {}

job::TableObserver PredictionProgress::observer() {
  return {.begin =
              [this](const models::Strategy& strategy, std::size_t done, std::size_t all) {
                progress_.show(
                    fmt::format("{}, {} ({} of {})", where_, strategy.name, done + 1, all),
                    static_cast<double>(done) / static_cast<double>(all));
              },
          .row =
              [this](const simulator::StrategyPrediction& row) {
                rows_.push_back(row);
                progress_.show_rows(rows_text(job_, rows_, width_));
              }};
}

}  // namespace paceline::cli
