// Tests: tests/cli/command_test.py.
#include "cli/catalog.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "calibration/shipped_profiles.h"
#include "experiments/reproduction.h"
#include "models/cluster/catalog.h"
#include "models/collective/catalogue.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"

namespace paceline::cli {
namespace {

template <class Range, class Describe>
std::vector<CatalogEntry> entries(const Range& range, Describe describe) {
  std::vector<CatalogEntry> list;
  for (const auto& entry : range) list.push_back({std::string(entry.name), describe(entry)});
  return list;
}

}  // namespace

std::vector<CatalogList> catalog() {
  const auto described = [](const auto& entry) { return std::string(entry.description); };
  const auto summed_up = [](const auto& entry) { return std::string(entry.summary); };
  const auto with_source = [](const auto& entry) {
    return fmt::format("{} ({})", entry.summary, entry.source);
  };
  std::vector<CatalogEntry> profiles;
  for (const std::string& name : calibration::shipped_profile_names())
    profiles.push_back({name, calibration::shipped_profile(name).origin});
  return {{"NETWORKS", entries(models::zoo(), described)},
          {"CLUSTERS", entries(models::catalog_clusters(), described)},
          {"DEVICES", entries(models::catalog_devices(), described)},
          {"LINKS", entries(models::catalog_links(), described)},
          {"SCHEDULES", entries(models::collective_catalogue(), with_source)},
          {"STRATEGIES", entries(models::strategy_catalogue(), with_source)},
          {"SYSTEMS", entries(models::other_system_catalogue(), with_source)},
          {"PROFILES", std::move(profiles)},
          {"EXPERIMENTS", entries(experiments::experiments(), summed_up)}};
}

std::string to_json(std::span<const CatalogList> lists) {
  nlohmann::ordered_json json = {{"schema", "paceline.catalog/1"}};
  for (const CatalogList& list : lists) {
    std::string key = list.title;
    std::transform(key.begin(), key.end(), key.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    json[key] = nlohmann::ordered_json::array();
    for (const CatalogEntry& entry : list.entries)
      json[key].push_back({{"name", entry.name}, {"description", entry.description}});
  }
  return json.dump(2);
}

}  // namespace paceline::cli
