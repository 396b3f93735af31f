// The catalogue that ships: devices, links and clusters, as data in catalog/*.yaml.
#pragma once

#include <string_view>
#include <vector>

#include "models/cluster/catalog_parts.h"
#include "models/cluster/cluster.h"

namespace paceline::models {

// Throws InputError that suggests the nearest name.
[[nodiscard]] Cluster catalog_cluster(std::string_view name);

// In the order of the file.
[[nodiscard]] std::vector<CatalogEntry> catalog_clusters();

}  // namespace paceline::models
