// Tests: tests/cli/command_test.py.
#include "cli/catalog.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "calibration/shipped_profiles.h"
#include "experiments/reproduction.h"
#include "models/base/json.h"
#include "models/base/json_records.h"
#include "models/base/parse_units.h"
#include "models/cluster/catalog.h"
#include "models/collective/catalogue.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::cli {
namespace {

template <class Range, class Describe>
std::vector<CatalogEntry> entries(const Range& range, Describe describe) {
  std::vector<CatalogEntry> list;
  for (const auto& entry : range) list.push_back({std::string(entry.name), describe(entry)});
  return list;
}

// What a device, a link or a cluster is beside its description, for those who choose one.
std::string facts_of_device(const std::string& name) {
  const models::Device device = models::catalog_device(name);
  std::string facts = simulator::is_gpu(device)            ? "GPU"
                      : simulator::has_collectives(device) ? "accelerator"
                                                           : "processor";
  if (device.year) facts += fmt::format(", {}", *device.year);
  if (device.cooling == models::Cooling::geforce) facts += ", geforce cooling";
  if (device.power) facts += ", " + to_text(device.power->value);
  return facts;
}

std::string facts_of_link(const std::string& name) {
  const models::Link link = models::catalog_link(name);
  return fmt::format("{}{}", link.kind ? models::name(*link.kind) : "no kind",
                     link.protocol == models::Protocol::tcp ? ", TCP" : "");
}

std::string facts_of_cluster(const std::string& name) {
  const models::Cluster cluster = models::catalog_cluster(name);
  return fmt::format("{} nodes of {} {}{}", cluster.nodes, cluster.ranks_per_node,
                     cluster.device.name,
                     cluster.price ? ", " + to_text(cluster.price->value) + " a node" : "");
}

template <class Facts>
std::vector<CatalogEntry> with_facts(const std::vector<models::CatalogEntry>& list, Facts facts) {
  return entries(list, [&](const models::CatalogEntry& entry) {
    return fmt::format("{} [{}]", entry.description, facts(entry.name));
  });
}

std::string key_of(const CatalogList& list) {
  std::string key = list.title;
  std::transform(key.begin(), key.end(), key.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return key;
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
          {"CLUSTERS", with_facts(models::catalog_clusters(), facts_of_cluster)},
          {"DEVICES", with_facts(models::catalog_devices(), facts_of_device)},
          {"LINKS", with_facts(models::catalog_links(), facts_of_link)},
          {"PRICES", entries(models::catalog_prices(), described)},
          {"SCHEDULES", entries(models::collective_catalogue(), with_source)},
          {"STRATEGIES", entries(models::strategy_catalogue(), with_source)},
          {"SHARDED", entries(models::sharded_catalogue(), with_source)},
          {"SYSTEMS", entries(models::other_system_catalogue(), with_source)},
          {"OPTIMIZERS", entries(models::optimizer_catalogue(), with_source)},
          {"PROFILES", std::move(profiles)},
          {"EXPERIMENTS", entries(experiments::experiments(), summed_up)}};
}

const Document<std::vector<CatalogList>>& catalog_document() {
  using Lists = std::vector<CatalogList>;
  static const auto entry = Document<CatalogEntry>()
                                .add("name", &CatalogEntry::name)
                                .add("description", &CatalogEntry::description, any_text());
  static const auto document = [] {
    Document<Lists> all("paceline.catalog/1",
                        "paceline show catalog --json: all names that commands take.");
    const Lists lists = catalog();
    for (std::size_t i = 0; i < lists.size(); ++i)
      all.add(
          key_of(lists[i]), [i](const Lists& of) { return of[i].entries; }, entry);
    return all;
  }();
  return document;
}

std::string to_csv(std::span<const CatalogList> lists) {
  Json entries = Json::array();
  for (const CatalogList& list : lists) {
    for (const CatalogEntry& entry : list.entries)
      entries.push_back(
          {{"list", key_of(list)}, {"name", entry.name}, {"description", entry.description}});
  }
  const Json document = {{"entries", std::move(entries)}};
  return csv_records(document, {"entries"});
}

}  // namespace paceline::cli
