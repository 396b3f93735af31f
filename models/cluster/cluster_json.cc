// Tests: tests/cli/command_test.py.
#include "models/cluster/cluster_json.h"

#include <fmt/core.h>

#include <cstdint>
#include <vector>

#include "models/cluster/cluster_figures.h"
#include "models/cluster/placement.h"

namespace paceline::models {
namespace {

const char* unit(const Figure<FlopsPerSecond>&) {
  return "flops_per_s";
}
const char* unit(const Figure<BytesPerSecond>&) {
  return "bytes_per_s";
}
const char* unit(const Figure<Bytes>&) {
  return "bytes";
}
const char* unit(const Figure<Seconds>&) {
  return "s";
}
const char* unit(const Figure<PerSecond>&) {
  return "per_s";
}
const char* unit(const Figure<Watts>&) {
  return "w";
}
const char* unit(const Figure<UsdPerHour>&) {
  return "usd_per_h";
}
const char* unit(const Figure<double>&) {
  return "1";
}

// A figure of a part of the cluster.
struct FigureLine {
  std::string part;  // "device"
  std::string what;  // "memory bandwidth"
  StatedFigure figure;
};

const Document<FigureLine>& figure_document() {
  static const auto document = Document<FigureLine>()
                                   .add("part", &FigureLine::part)
                                   .add("what", &FigureLine::what)
                                   .include(&FigureLine::figure, stated_figure_document());
  return document;
}

std::vector<FigureLine> figures_of(const Cluster& cluster) {
  std::vector<FigureLine> lines;
  for_each_figure(cluster, [&lines](const char* part, const char* what, const auto& figure) {
    lines.push_back({part, what, stated(figure, unit(figure))});
  });
  return lines;
}

const Document<PlatformLink>& platform_link_document() {
  static const auto document = Document<PlatformLink>()
                                   .add("name", &PlatformLink::name)
                                   .add("bandwidth_bytes_per_s", &PlatformLink::bandwidth)
                                   .add("latency_s", &PlatformLink::latency)
                                   .add("is_shared", &PlatformLink::is_shared);
  return document;
}

}  // namespace

const Document<Cluster>& cluster_document() {
  static const auto document =
      Document<Cluster>("paceline.cluster/1",
                        "paceline show cluster --json: a cluster and what its figures rest on.")
          .add("name", &Cluster::name)
          .add("description", &Cluster::description, any_text())
          .add("nodes", &Cluster::nodes, at_least(1))
          .add("ranks_per_node", &Cluster::ranks_per_node, at_least(1))
          .add("hosts_per_node", &Cluster::hosts_per_node, at_least(1))
          .add("ranks", &Cluster::ranks, at_least(1))
          .add("device", through(&Cluster::device, &Device::name))
          .add("intra", through(&Cluster::intra, &Link::name))
          .add("intra_topology", &Cluster::intra_kind)
          .add("nic",
               [](const Cluster& cluster) {
                 return cluster.has_nic() ? std::optional(cluster.nic.name) : std::nullopt;
               })
          .add("nics_per_node",
               [](const Cluster& cluster) { return cluster.has_nic() ? cluster.nics_per_node : 0; })
          .add("nic_use", &Cluster::nic_use)
          .add("fabric", described_fabric)
          .add("placement", described_placement)
          .add("profile", [](const Cluster& cluster) { return non_empty(cluster.profile); })
          .add("source", &Cluster::source, any_text())
          .add("figures", figures_of, figure_document(), 1);
  return document;
}

std::string digest(const Cluster& cluster) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : cluster_document().text(cluster)) {
    value ^= static_cast<unsigned char>(c);
    value *= 0x100000001b3;
  }
  return fmt::format("{:016x}", value);
}

const Document<Platform>& platform_document() {
  static const auto document =
      Document<Platform>("paceline.platform/1",
                         "paceline platform --json: hosts and links of a SimGrid platform.")
          .add("name", &Platform::name, any_text())
          .add("hosts", &Platform::hosts)
          .add("links", &Platform::links, platform_link_document());
  return document;
}

}  // namespace paceline::models
