// The devices, links and prices of the catalogue that ships (catalog/devices.yaml,
// catalog/links.yaml, catalog/expenses.yaml). The clusters are in catalog.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/cluster/cluster.h"

namespace paceline::models {

// Each throws InputError that suggests the nearest name.
[[nodiscard]] Device catalog_device(std::string_view name);
[[nodiscard]] Link catalog_link(std::string_view name);
// The price of an hour of a node, as somebody lists it (catalog/expenses.yaml).
[[nodiscard]] Figure<UsdPerHour> catalog_price(std::string_view name);

// How often fleets report that jobs are interrupted, and for how long (catalog/expenses.yaml).
struct CatalogFailures {
  Figure<Seconds> between;  // time of devices, summed over them
  Figure<Seconds> recovery;
};
[[nodiscard]] CatalogFailures catalog_failures();

struct CatalogEntry {
  std::string name;
  std::string description;
};

// In the order of the files.
[[nodiscard]] std::vector<CatalogEntry> catalog_devices();
[[nodiscard]] std::vector<CatalogEntry> catalog_links();
[[nodiscard]] std::vector<CatalogEntry> catalog_prices();

}  // namespace paceline::models
