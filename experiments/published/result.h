// Published numbers beside ours, as values: what `paceline reproduce` prints.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/figure.h"

namespace paceline::experiments {

// The subject of a row: replicated or sharded training, one of many layouts of a job, an all-reduce, or another
// collective. A count follows from a network or a schedule alone, and no summary has it.
enum class RowKind { training, sharded, layout, all_reduce, collective, count };

// "training", "sharded", "layout", "all-reduce", "collective", "count".
[[nodiscard]] std::string_view name(RowKind kind);

struct Row {
  std::string id = {};      // in its table
  std::string source = {};  // section, table or figure
  std::string what = {};
  Provenance provenance = Provenance::predicted;  // calibrated: the row was spent on a fit
  std::string unit = {};                          // "%", "min", "x", "images/s", "us"
  double published = 0;
  double ours = 0;
  double low = 0;  // the interval of ours; both ends are `ours` where it has none
  double high = 0;
  std::string configuration = {};  // how ours was made
  std::string note = {};           // why it is off, if it is
  RowKind kind = RowKind::training;
  // Whether more of it is slower, as of a time. An error is then that of its reciprocal, a speed.
  bool is_time = false;
  std::string command = {};  // of the `paceline` command that prints ours; empty: there is none
  std::string series = {};
  std::string strategy = {};  // its name alone
  // What two rows have in common that differ in their strategies alone; empty: nothing is.
  std::string contest = {};
  // Rows with the same text are layouts of one job on the same devices. It is empty for other rows.
  std::string sweep = {};
  double bytes = 0;  // of an all-reduce or another collective
  // The naive guess of a predicted row of training, in its unit: the rate of a rank of the series at the
  // most ranks that it was calibrated on, times the ranks, and for another network as many FLOP/s; of efficiencies 1, of ratios that of ranks.
  // Nothing where no such rate is known.
  std::optional<double> naive = {};
  // How far the row is from what was calibrated, which widens its interval (fitted.h): in doublings of
  // ranks, and in exposed communication as a share of the iteration.
  double doublings = 0;
  double exposed = 0;

  // ours / published - 1
  [[nodiscard]] double relative_error() const { return ours / published - 1; }
  // The same of the speed: more than 0 where the prediction is too fast.
  [[nodiscard]] double speed_error() const { return speed_error_of(ours); }
  [[nodiscard]] double speed_error_of(double guess) const {
    return is_time ? published / guess - 1 : guess / published - 1;
  }
  [[nodiscard]] bool is_inside() const { return low <= published && published <= high; }
};

// A row without ours: left out by its table, or one that could not be predicted.
struct RowWithout {
  std::string id;
  std::string what;
  std::string why;
};

struct Reproduction {
  std::string name;
  std::string title;
  std::vector<Row> rows = {};
  std::vector<std::string> notes = {};
  std::vector<RowWithout> left_out = {};
  std::vector<RowWithout> failed = {};
};

}  // namespace paceline::experiments
