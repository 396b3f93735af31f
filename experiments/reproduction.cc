// Tests: tests/experiments/published_test.cc, tests/experiments/jizhi_test.cc.
#include "experiments/reproduction.h"

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

std::vector<Reproduction> reproduce_leaving_one_out(const PredictOptions& options,
                                                    const SourceObserver& begin) {
  PredictOptions unfitted = options;
  unfitted.fitted = {};
  std::vector<Reproduction> results = reproduce_all(unfitted, begin);
  const std::vector<Reproduction> evidence = results;
  for (Reproduction& result : results) {
    std::vector<const Reproduction*> others;
    for (const Reproduction& other : evidence) {
      if (other.name != result.name) others.push_back(&other);
    }
    PredictOptions fitted = options;
    fitted.fitted = fitted_from(others);
    if (fitted.fitted == Fitted{}) continue;
    if (begin) begin(result.name, 1);
    result = reproduce(result.name, fitted);
  }
  return results;
}

}  // namespace paceline::experiments
