// Tests: tests/cli/serve_test.py (end to end).
#include "cli/serve/asked_options.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "calibration/shipped_profiles.h"
#include "cli/job/files.h"
#include "models/base/error.h"
#include "models/base/names.h"
#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "simulator/question/question_fields.h"

namespace paceline::serve {
namespace {

// What the page's reader may ask for. Others name files, or take more time than a reader waits.
constexpr std::array<std::string_view, 23> known_names = {
    "model",     "cluster",    "placement", "nic",        "ranks",   "batch",
    "sequence",  "accumulate", "precision", "wire",       "theta",   "eta",
    "group",     "overlap",    "baseline",  "profile",    "what-if", "spread",
    "slow-rank", "slow-node",  "backup",    "iterations", "seed"};

void check_name(const char* option, const char* kind, const std::string& name,
                const std::vector<std::string>& known) {
  if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return;
  throw unknown_name(kind, name, known).at({option});
}

std::vector<std::string> names_of(const auto& entries, const auto& own) {
  std::vector<std::string> names;
  for (const auto& [path, value] : own) names.push_back(path);
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return names;
}

}  // namespace

simulator::Question parse_options(const std::map<std::string, std::string>& values,
                                  const OwnFiles& own) {
  simulator::Question question;
  for (const auto& [name, value] : values) {
    if (std::ranges::find(known_names, name) == known_names.end())
      throw unknown_name("option", name, {known_names.begin(), known_names.end()});
    if (!value.empty()) read_field(simulator::question_field(name), value, question);
  }
  if (question.networks.size() > 1)
    throw InputError({"--model"}, "several networks", "ask for one after the other");
  if (!question.networks.empty())
    check_name("--model", "network", question.networks.front(),
               names_of(models::zoo(), own.networks));
  check_name("--cluster", "cluster", question.cluster,
             names_of(models::catalog_clusters(), own.clusters));
  std::vector<std::string> profiles = calibration::shipped_profile_names();
  profiles.emplace_back("none");
  check_name("--profile", "profile", question.profile, profiles);
  const std::string& placement = question.placement;
  if (job::names_a_file(placement) || placement.ends_with(".txt"))
    throw InputError({"--placement"}, "a file", "files are not read here: give a name, or slots");
  if (question.stragglers.spread.starts_with("file:"))
    throw InputError({"--spread"}, "a file", "files are not read here: give normal:CV");
  return question;
}

job::GivenValues given_of(const simulator::Question& question, const OwnFiles& own) {
  job::GivenValues given;
  if (question.networks.size() == 1)
    if (const auto found = own.networks.find(question.networks.front());
        found != own.networks.end())
      given.network = found->second;
  if (const auto found = own.clusters.find(question.cluster); found != own.clusters.end())
    given.cluster = found->second;
  return given;
}

}  // namespace paceline::serve
