// Tests: tests/cli/serve_test.py (end to end).
#include "cli/serve/asked_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "calibration/shipped_profiles.h"
#include "cli/job/files.h"
#include "models/base/error.h"
#include "models/base/names.h"
#include "models/cluster/catalog.h"
#include "models/network/zoo.h"

namespace paceline::serve {
namespace {

using Places = std::vector<std::pair<std::string, std::string*>>;

Places places_in(AskedOptions& options) {
  job::JobOptions& job = options.job;
  job::StragglerOptions& stragglers = options.stragglers;
  return {{"model", &job.model},
          {"cluster", &job.cluster},
          {"placement", &job.placement},
          {"nic", &job.nic},
          {"ranks", &job.ranks},
          {"batch", &job.batch},
          {"sequence", &job.sequence},
          {"accumulate", &job.accumulate},
          {"precision", &job.precision},
          {"wire", &job.wire},
          {"theta", &job.thresholds.theta},
          {"eta", &job.thresholds.eta},
          {"group", &job.thresholds.group},
          {"overlap", &job.overlap},
          {"baseline", &job.baseline},
          {"profile", &job.profile},
          {"what-if", &job.what_if},
          {"spread", &stragglers.spread},
          {"slow-rank", &stragglers.slow_ranks},
          {"slow-node", &stragglers.slow_nodes},
          {"backup", &stragglers.backup},
          {"iterations", &stragglers.iterations},
          {"seed", &stragglers.seed}};
}

void check_name(const char* option, const char* kind, const std::string& name,
                const std::vector<std::string>& known) {
  if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return;
  throw unknown_name(kind, name, known).at({option});
}

std::vector<std::string> names_of(const auto& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return names;
}

}  // namespace

AskedOptions parse_options(const std::map<std::string, std::string>& values) {
  AskedOptions options;
  const Places places = places_in(options);
  for (const auto& [name, value] : values) {
    const auto place = std::find_if(places.begin(), places.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (place == places.end()) {
      std::vector<std::string> known;
      for (const auto& [of_place, text] : places) known.push_back(of_place);
      throw unknown_name("option", name, known);
    }
    *place->second = value;
  }
  check_name("--model", "network", options.job.model, names_of(models::zoo()));
  check_name("--cluster", "cluster", options.job.cluster, names_of(models::catalog_clusters()));
  std::vector<std::string> profiles = calibration::shipped_profile_names();
  profiles.emplace_back("none");
  check_name("--profile", "profile", options.job.profile, profiles);
  const std::string& placement = options.job.placement;
  if (job::names_a_file(placement) || placement.ends_with(".txt"))
    throw InputError({"--placement"}, "a file", "files are not read here: give a name, or slots");
  if (options.stragglers.spread.starts_with("file:"))
    throw InputError({"--spread"}, "a file", "files are not read here: give normal:CV");
  return options;
}

}  // namespace paceline::serve
