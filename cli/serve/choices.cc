// Tests: tests/cli/serve_test.py, tests/cli/schemas_test.py.
#include "cli/serve/choices.h"

#include "models/cluster/catalog.h"
#include "models/cluster/placement.h"
#include "models/network/zoo.h"

namespace paceline::serve {

Choices choices() {
  Choices all;
  for (const models::ZooEntry& entry : models::zoo())
    all.models.push_back({std::string(entry.name), std::string(entry.description)});
  for (const models::CatalogEntry& entry : models::catalog_clusters()) {
    const models::Cluster cluster = models::catalog_cluster(entry.name);
    all.clusters.push_back(
        {{entry.name, entry.description}, models::placed_ranks(cluster), cluster.ranks_per_node});
  }
  return all;
}

const Document<Choices>& choices_document() {
  static const auto choice =
      Document<Choice>().add("name", &Choice::name).add("description", &Choice::description);
  static const auto cluster =
      Document<ClusterChoice>()
          .include(&ClusterChoice::choice, choice)
          .add("ranks", &ClusterChoice::ranks, at_least(1))
          .add("ranks_per_node", &ClusterChoice::ranks_per_node, at_least(1));
  static const auto document =
      Document<Choices>("paceline.choices/1",
                        "paceline serve, /choices: what the lists of the what-if page offer.")
          .add("models", &Choices::models, choice, 1)
          .add("clusters", &Choices::clusters, cluster, 1);
  return document;
}

}  // namespace paceline::serve
