// Sets a published result beside ours, row by row.
//
// The published figures are data (expected.csv of each experiment): they are read, never written,
// and each row says whether it was used to calibrate or is predicted.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/figure.h"
#include "models/profile/profile.h"

namespace paceline::experiments {

struct Row {
  std::string id;      // in expected.csv
  std::string source;  // section, table or figure
  std::string what;
  Provenance provenance = Provenance::predicted;  // calibrated: the row was spent on a fit
  std::string unit;                               // "%", "min", "x", "images/s", "ranks"
  double published = 0;
  double ours = 0;
  std::string configuration;  // how ours was made
  std::string note;           // why it is off, if it is

  [[nodiscard]] double relative_error() const { return ours / published - 1; }
};

struct Reproduction {
  std::string name;
  std::string title;
  std::vector<Row> rows;
  std::optional<models::Profile> profile;  // what was calibrated on the way
  std::vector<std::string> notes;
};

struct Experiment {
  std::string_view name;
  std::string_view summary;
  Reproduction (*reproduce)() = nullptr;
};

[[nodiscard]] std::span<const Experiment> experiments();
// Throws InputError that suggests the nearest name.
[[nodiscard]] const Experiment& experiment(std::string_view name);

// The rows of an expected.csv: "id,source,what,role,unit,published" with `ours` still 0. Fields
// have no commas. Throws InputError with file and line.
[[nodiscard]] std::vector<Row> parse_expected(std::string_view text, const std::string& file);

}  // namespace paceline::experiments
