// Tests: tests/models/cluster_catalog_test.cc, tests/models/cluster_test.cc.
#include "models/cluster/catalog.h"

#include <string>

#include "models/cluster/catalog_file.h"
#include "models/cluster/cluster_reader.h"

namespace paceline::models {

Cluster catalog_cluster(std::string_view name) {
  const CatalogFile file("clusters.yaml", "clusters");
  return read_cluster(file.entry(name, "cluster"), file.file(), std::string(name));
}

std::vector<CatalogEntry> catalog_clusters() {
  return CatalogFile("clusters.yaml", "clusters").entries();
}

}  // namespace paceline::models
