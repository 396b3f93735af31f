// A source of published measurements: a folder that is data only.
//
//   README.md         its first heading is the title
//   expected.csv      rows of training: what was measured, and the configuration
//   all_reduce.csv    times of single all-reduces, where the source has them
//   clusters/*.yaml   clusters, as --cluster reads them
//   networks/*        networks that the zoo lacks, as --model reads them: YAML, or a config.json of Hugging Face
//
// docs/formats.md, "Published results", has the columns. The folders of experiments/ are part of
// the program; a user's own folder is read from disk.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/precision.h"
#include "models/collective/catalogue.h"

namespace paceline::experiments {

// The files of a folder by their path in it ("clusters/a.yaml"), and where it is, for messages.
struct SourceFiles {
  std::string name;    // the folder's own name
  std::string folder;  // "experiments/jizhi"
  std::map<std::string, std::string, std::less<>> texts;
};

enum class Role {
  calibrates,    // spent on the calibration of its series, and tests nothing
  second_point,  // of the second smallest scale: calibrates beside the first, or is predicted
  predicted,
  reference,  // has no published value: the ratios of other rows are against it
  left_out,   // cannot be expressed; its note says why
};

// How many scales of a series calibrate it: none, so that all rows are predicted from datasheets; the
// smallest; or the two smallest where its table names a row of the second.
enum class CalibrationPoints { none, one, two };

[[nodiscard]] bool is_spent(Role role, CalibrationPoints points);

// What a row's published number is of.
enum class Quantity {
  throughput,  // samples per second of all ranks
  iteration,   // time of one iteration
  efficiency,  // throughput for each rank as a share of that of the row `against`
  ratio,       // throughput over that of the row `against`
  minutes,     // time to train --epochs epochs of --dataset samples
  // These follow from the network, the schedule or the layout alone (counts.h).
  flops_per_parameter,
  idle_ranks,
  memory,  // bytes that a rank needs
};

// Units in which a quantity is published, and how many of its own (samples/s, s, shares) one is.
struct PublishedUnit {
  std::string_view name;
  Quantity quantity;
  double factor;
  bool of_tokens = false;  // in place of samples
  bool of_rank = false;    // in place of all ranks
};
// Throws InputError that lists the units of the quantity.
[[nodiscard]] PublishedUnit published_unit(Quantity quantity, std::string_view name);

struct TrainingRow {
  int line = 0;       // in expected.csv
  std::string id;     // unique in its file
  std::string where;  // page, table or figure
  std::string what;   // for people
  // Rows of one series share the calibration of compute times.
  std::string series;
  Role role = Role::predicted;
  std::string cluster;  // a file of clusters/ without its ending, or a name of the catalogue
  std::string model;    // a file of networks/ without its ending, or a name of the zoo
  int batch = 1;        // per rank
  std::optional<int> sequence;  // tokens of a sample
  models::Precision precision = models::Precision::fp32;
  int ranks = 1;
  std::string strategy;
  std::string options;  // words of `paceline predict`
  Quantity quantity = Quantity::throughput;
  std::string against;   // id of another row, for efficiency and ratio
  double published = 0;  // in `unit`; 0 for a reference
  double rounding = 0;   // half of the last digit that is printed
  std::string unit;
  std::string note;
};

// How many of the quantity's own one of the row's unit is, with the row's ranks and tokens of a sample.
[[nodiscard]] double unit_factor(const TrainingRow& row);

struct AllReduceRow {
  int line = 0;  // in all_reduce.csv
  std::string id;
  std::string where;
  std::string series;
  Role role = Role::predicted;
  std::string cluster;
  int ranks = 1;
  std::string library;    // that was measured, for people: "NCCL 2.8.3"
  std::string algorithm;  // a schedule of ours, or "nccl": NCCL's own choice
  models::Collective collective = models::Collective::all_reduce;
  double bytes = 0;
  double published_s = 0;
  double rounding_s = 0;
  std::string note;
};

struct Source {
  SourceFiles files;
  std::string title;
  std::vector<TrainingRow> training;  // of left-out rows, only texts and numbers that were given
  std::vector<AllReduceRow> all_reduces;

  // Null if there is no such row.
  [[nodiscard]] const TrainingRow* row(std::string_view id) const;
  // The path of a file of the folder as messages and commands name it.
  [[nodiscard]] std::string path(const std::string& file) const {
    return files.folder + "/" + file;
  }
};

// The first heading of a README; empty if it does not begin with one.
[[nodiscard]] std::string title_of(std::string_view readme);

[[nodiscard]] std::string_view name(Role role);
[[nodiscard]] std::string_view name(Quantity quantity);

// Reads the tables. Clusters, networks, strategies and options are read later, where a row is
// predicted (row_job.h). Throws InputError with file and line: for damaged tables, for an id that
// stands twice, for a row `against` that is missing or lacks the throughput that is needed, and for a
// series of predicted rows whose `against` is circular, so that no row calibrates it.
[[nodiscard]] Source read_source(SourceFiles files);

// The folder of a user. `read` gives the text of a file. Throws InputError.
[[nodiscard]] SourceFiles source_files(const std::string& folder,
                                       const std::function<std::string(const std::string&)>& read);

// Names of the sources that are part of the program, in alphabetical order.
[[nodiscard]] std::vector<std::string> shipped_source_names();
// The title and the files of one of them. The name must be one.
[[nodiscard]] std::string shipped_source_title(std::string_view name);
[[nodiscard]] SourceFiles shipped_source_files(std::string_view name);

}  // namespace paceline::experiments
