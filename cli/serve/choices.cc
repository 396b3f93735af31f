// Tests: tests/cli/serve_test.py, tests/cli/schemas_test.py.
#include "cli/serve/choices.h"

#include <optional>
#include <utility>

#include "models/cluster/catalog.h"
#include "models/cluster/placement.h"
#include "models/network/zoo.h"

namespace paceline::serve {

namespace {

ClusterChoice choice_of(Choice choice, const models::Cluster& cluster) {
  return {std::move(choice), models::placed_ranks(cluster), cluster.ranks_per_node};
}

}  // namespace

Choices choices(const OwnFiles& own) {
  Choices all;
  for (const auto& [path, network] : own.networks)
    all.models.push_back({path, network.name(), true});
  for (const auto& [path, cluster] : own.clusters)
    all.clusters.push_back(choice_of({path, cluster.name, true}, cluster));
  for (const models::ZooEntry& entry : models::zoo())
    all.models.push_back({std::string(entry.name), std::string(entry.description)});
  for (const models::CatalogEntry& entry : models::catalog_clusters())
    all.clusters.push_back(
        choice_of({entry.name, entry.description}, models::catalog_cluster(entry.name)));
  return all;
}

const Document<Choices>& choices_document() {
  static const auto choice =
      Document<Choice>()
          .add("name", &Choice::name)
          .add("description", &Choice::description)
          .add_if_any(
              "own",
              [](const Choice& of) { return of.is_own ? std::optional(true) : std::nullopt; },
              always(true));
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
