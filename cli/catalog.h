// All names that the command knows, in lists: what `paceline show catalog` prints.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/base/document.h"
#include "models/cluster/cluster.h"

namespace paceline::cli {

struct CatalogEntry {
  std::string name;
  std::string description;
};

struct CatalogList {
  std::string title;  // "NETWORKS"; its key in JSON is the same in small letters
  std::vector<CatalogEntry> entries;
};

// Networks, clusters, devices, links, prices, schedules, strategies, shipped profiles, experiments.
[[nodiscard]] std::vector<CatalogList> catalog();

// Writes what catalog() returns.
[[nodiscard]] const Document<std::vector<CatalogList>>& catalog_document();
// Writes the clusters of `paceline show clusters`.
[[nodiscard]] const Document<std::vector<models::Cluster>>& clusters_document();
// A record for each entry: list, name, description.
[[nodiscard]] std::string to_csv(std::span<const CatalogList> lists);

}  // namespace paceline::cli
