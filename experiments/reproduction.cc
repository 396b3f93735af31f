// Tests: tests/experiments/published_test.cc, tests/experiments/jizhi_test.cc.
#include "experiments/reproduction.h"

#include <fmt/core.h>

#include <algorithm>

#include "experiments/jizhi/jizhi_profile.h"
#include "experiments/published/source.h"
#include "models/base/names.h"

namespace paceline::experiments {

std::vector<Experiment> experiments() {
  std::vector<Experiment> all;
  for (const std::string& name : shipped_source_names())
    all.push_back({name, shipped_source_title(name)});
  return all;
}

Reproduction reproduce(std::string_view name, const PredictOptions& options) {
  const std::vector<std::string> names = shipped_source_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw unknown_name("experiment", name, names);
  return predict_source(read_source(shipped_source_files(name)), options);
}

std::optional<models::Profile> fitted_profile(std::string_view name) {
  if (name != "jizhi") return std::nullopt;
  return jizhi_profile(read_source(shipped_source_files(name)));
}

std::vector<Reproduction> reproduce_all(const PredictOptions& options,
                                        const SourceObserver& begin) {
  std::vector<Reproduction> results;
  const std::vector<Experiment> all = experiments();
  for (const Experiment& entry : all) {
    if (begin)
      begin(entry.name, static_cast<double>(results.size()) / static_cast<double>(all.size()));
    results.push_back(reproduce(entry.name, options));
  }
  return results;
}

std::vector<Without> reproduce_without_each(const PredictOptions& options,
                                            const SourceObserver& begin) {
  std::vector<Without> results;
  const double count = static_cast<double>(mechanisms().size());
  for (const Mechanism& mechanism : mechanisms()) {
    PredictOptions without = options;
    without.without = &mechanism;
    const double done = static_cast<double>(results.size());
    const auto show = [&](const std::string& name, double share) {
      begin(fmt::format("{} without {}", name, mechanism.name), (done + share) / count);
    };
    results.push_back({&mechanism, reproduce_all(without, begin ? SourceObserver(show) : nullptr)});
  }
  return results;
}

LeftOneOut reproduce_leaving_one_out(const PredictOptions& options, const SourceObserver& begin) {
  PredictOptions bare = options;
  bare.unexplained = Unexplained{};
  // The two passes share the progress.
  const auto half = [&begin](double from) -> SourceObserver {
    if (!begin) return {};
    return
        [&begin, from](const std::string& name, double share) { begin(name, from + 0.5 * share); };
  };
  const std::vector<Reproduction> evidence = reproduce_all(bare, half(0));
  const auto fitted = [&evidence](std::string_view left_out) {
    std::vector<const Reproduction*> others;
    for (const Reproduction& source : evidence) {
      if (source.name != left_out) others.push_back(&source);
    }
    return fitted_from(others);
  };
  LeftOneOut result{.sources = {}, .of_all = fitted("")};
  const SourceObserver show = half(0.5);
  for (const Reproduction& source : evidence) {
    if (show)
      show(source.name,
           static_cast<double>(result.sources.size()) / static_cast<double>(evidence.size()));
    PredictOptions with = options;
    with.unexplained = fitted(source.name);
    result.sources.push_back(reproduce(source.name, with));
    result.sources.back().notes.push_back(
        "What nothing explains, fitted to the other sources: " + to_text(*with.unexplained) + ".");
  }
  return result;
}

}  // namespace paceline::experiments
