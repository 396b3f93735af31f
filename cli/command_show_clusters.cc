// paceline show clusters: the clusters of the catalogue, by the year of their devices.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/catalog.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/table.h"
#include "models/cluster/catalog.h"
#include "models/cluster/fabric.h"

namespace paceline::cli {
namespace {

std::vector<models::Cluster> clusters_by_year() {
  std::vector<models::Cluster> clusters;
  for (const models::CatalogEntry& entry : models::catalog_clusters())
    clusters.push_back(models::catalog_cluster(entry.name));
  std::ranges::stable_sort(
      clusters, {}, [](const models::Cluster& cluster) { return cluster.device.year.value_or(0); });
  return clusters;
}

std::string nics_of(const models::Cluster& cluster) {
  return cluster.nics_per_node == 1
             ? cluster.nic.name
             : fmt::format("{} x {}", cluster.nics_per_node, cluster.nic.name);
}

Table clusters_table(const std::vector<models::Cluster>& clusters) {
  Table table({{.title = "year"},
               {.title = "cluster", .align = Align::left},
               {.title = "nodes"},
               {.title = "a node", .align = Align::left},
               {.title = "inside", .align = Align::left},
               {.title = "NICs of a node", .align = Align::left},
               {.title = "fabric", .align = Align::left}});
  for (const models::Cluster& cluster : clusters)
    table.add({cluster.device.year ? fmt::format("{}", *cluster.device.year) : "-", cluster.name,
               fmt::format("{}", cluster.nodes),
               fmt::format("{} x {}", cluster.ranks_per_node, cluster.device.name),
               cluster.intra.name, nics_of(cluster), std::string(name(cluster.fabric.kind))});
  return table;
}

void show_clusters(const OutputFormat& format) {
  const std::vector<models::Cluster> clusters = clusters_by_year();
  print_answer(format,
               {.document = [&] { return clusters_document().json(clusters); },
                .records = {{"clusters"}},
                .markdown = [&] { return clusters_table(clusters).markdown(); },
                .text =
                    [&](int) {
                      return clusters_table(clusters).text() +
                             "\nA cluster has the year of its devices. Sources and intervals: "
                             "paceline show cluster NAME.\n";
                    },
                .wide = true});
}

}  // namespace

const Document<std::vector<models::Cluster>>& clusters_document() {
  using models::Cluster;
  static const auto cluster =
      Document<Cluster>()
          .add("name", &Cluster::name)
          .add("description", &Cluster::description, any_text())
          .add("year", [](const Cluster& of) { return of.device.year; })
          .add("nodes", &Cluster::nodes, at_least(1))
          .add("ranks_per_node", &Cluster::ranks_per_node, at_least(1))
          .add("device", through(&Cluster::device, &models::Device::name))
          .add("intra", through(&Cluster::intra, &models::Link::name))
          .add("nic", through(&Cluster::nic, &models::Link::name))
          .add("nics_per_node", &Cluster::nics_per_node, at_least(1))
          .add("fabric", [](const Cluster& of) { return std::string(name(of.fabric.kind)); })
          .add("source", &Cluster::source);
  static const auto document =
      Document<std::vector<Cluster>>("paceline.clusters/1",
                                     "paceline show clusters --json: the clusters of the "
                                     "catalogue, by the year of their devices.")
          .add(
              "clusters", [](const std::vector<Cluster>& all) { return all; }, cluster, 1);
  return document;
}

void add_show_clusters(Command& show) {
  Command& command =
      show.add_command("clusters", "The clusters of the catalogue, by the year of their devices");
  const auto format = std::make_shared<OutputFormat>();
  add_output_formats(command, *format);
  command.on_run([format] {
    check_output_format(*format);
    show_clusters(*format);
  });
}

}  // namespace paceline::cli
