// Sets a published result beside ours, row by row.
//
// The published figures are data (the folders of published/source.h, and expected.csv of those that
// compute in code): they are read, never written, and each row says whether it was used to calibrate
// or is predicted.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/published/predict_source.h"
#include "experiments/published/result.h"

namespace paceline::experiments {

struct Experiment {
  std::string name;
  std::string summary;
};

// All published results that are part of the program, by name.
[[nodiscard]] std::vector<Experiment> experiments();

// Reproduces one of them. Rows that cannot be predicted are listed. Throws InputError that suggests
// the nearest name.
[[nodiscard]] Reproduction reproduce(std::string_view name, const PredictOptions& options);

// Called before a source is predicted, with the share of the work that is done.
using SourceObserver = std::function<void(const std::string& name, double share)>;

// Reproduces all of them, in their order.
[[nodiscard]] std::vector<Reproduction> reproduce_all(const PredictOptions& options,
                                                      const SourceObserver& begin = {});

// The same, where whatever is fitted to published rows comes from other sources than the one that is
// predicted (published/fitted.h). The options' own `fitted` has no effect.
[[nodiscard]] std::vector<Reproduction> reproduce_leaving_one_out(const PredictOptions& options,
                                                                  const SourceObserver& begin = {});

// The rows of an expected.csv: "id,source,what,role,unit,published" with `ours` still 0. Fields
// have no commas. Throws InputError with file and line.
[[nodiscard]] std::vector<Row> parse_expected(std::string_view text, const std::string& file);

}  // namespace paceline::experiments
