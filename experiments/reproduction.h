// The published results that are part of the program, ours beside theirs.
//
// They are data: the folders of experiments/ that published/source.h describes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/published/predict_source.h"
#include "experiments/published/result.h"
#include "models/profile/profile.h"

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

// The profile that ships and was fitted to rows of this one; nothing for most. Takes about a
// second.
[[nodiscard]] std::optional<models::Profile> fitted_profile(std::string_view name);

// Called before a source is predicted, with the share of the work that is done.
using SourceObserver = std::function<void(const std::string& name, double share)>;

// Reproduces all of them, in their order.
[[nodiscard]] std::vector<Reproduction> reproduce_all(const PredictOptions& options,
                                                      const SourceObserver& begin = {});

// The same without each of the mechanisms (published/mechanisms.h), one at a time.
[[nodiscard]] std::vector<Without> reproduce_without_each(const PredictOptions& options,
                                                          const SourceObserver& begin = {});

struct LeftOneOut {
  // In their order. Whatever is fitted to published rows (published/fitted.h) comes from other
  // sources than the one that is predicted; a note of each says what it is.
  std::vector<Reproduction> sources;
  Unexplained of_all;  // fitted to all sources
};

// The same as reproduce_all(), leaving one source out of each fit. The options' own `unexplained` has
// no effect. Takes about twice as long.
[[nodiscard]] LeftOneOut reproduce_leaving_one_out(const PredictOptions& options,
                                                   const SourceObserver& begin = {});

}  // namespace paceline::experiments
