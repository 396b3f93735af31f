// How good predictions of many rows are, in a few numbers.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "experiments/published/result.h"

namespace paceline::experiments {

// A summary of rows that were predicted; those that were spent on calibration do not count. Errors are of
// speeds, as shares: 0.1 is a speed that is predicted 10 % too high.
struct Summary {
  int rows = 0;
  int calibrated = 0;  // rows that were spent
  double median = 0;   // of absolute errors
  double p90 = 0;      // likewise
  double worst = 0;    // the error of the largest absolute value, with its sign
  double bias = 0;     // median of the errors with their signs
  int inside = 0;      // rows whose published value is in the interval of ours
  // Pairs of rows that differ in their strategies alone, and whose published speeds differ by more
  // than 5 %; and how many of these we order alike.
  int pairs = 0;
  int ordered = 0;
  // The naive guess (Row::naive) on the rows that have one, and ours on the same rows.
  struct Naive {
    int rows = 0;
    double median = 0;
    double p90 = 0;
    double our_median = 0;
    double our_p90 = 0;

    // 1 - our error over that of the naive guess, in the median; 0 where the guess has no error.
    [[nodiscard]] double skill() const { return median > 0 ? 1 - our_median / median : 0; }
  };
  Naive naive = {};
};

// A summary of the rows for which `counts` is true. O(n log n + n x rows of a contest).
[[nodiscard]] Summary summary_of(std::span<const Row> rows,
                                 const std::function<bool(const Row&)>& counts);

// How well predictions order the layouts of one job on the same devices: parallelism, micro-batches, recomputation.
struct Sweeps {
  int sweeps = 0;  // of at least three predicted rows each
  int rows = 0;    // of all of them
  // The time that is lost where the layout runs that is predicted to be the fastest, as a share of the time of
  // the fastest one.
  double median_regret = 0;
  double mean_regret = 0;
  double worst_regret = 0;
  // Kendall's tau of predicted and published speeds: 1 where all pairs of layouts are in the published order,
  // -1 where none is.
  double median_tau = 0;
};
// O(rows of a sweep x rows).
[[nodiscard]] Sweeps sweeps_of(std::span<const Row> rows);

// The rows of all sources, in their order.
[[nodiscard]] std::vector<Row> rows_of(std::span<const Reproduction> sources);

// The size up to which an all-reduce is small.
inline constexpr double small_all_reduce_bytes = 65536;

[[nodiscard]] bool is_training(const Row& row);  // replicated
// Sharded training in a series that a row calibrates, and in one that rests on the device's datasheet.
[[nodiscard]] bool is_sharded(const Row& row);
[[nodiscard]] bool is_sharded_from_datasheet(const Row& row);
// One of many layouts of a job, of which the order counts (Sweeps).
[[nodiscard]] bool is_layout(const Row& row);
[[nodiscard]] bool is_small_all_reduce(const Row& row);
[[nodiscard]] bool is_large_all_reduce(const Row& row);
// An all-gather, a reduce-scatter, an all-to-all, ... of any size.
[[nodiscard]] bool is_other_collective(const Row& row);

// Rows that are summed up together.
struct RowClass {
  std::string_view words;   // "all-reduces up to 64 KiB"
  std::string_view suffix;  // behind the name of a source, in tables
  const char* key;          // in documents
  bool (*counts)(const Row& row);
};
// Every row is in one of these classes, except counts. In the order in which people read them.
[[nodiscard]] std::span<const RowClass> row_classes();

}  // namespace paceline::experiments
