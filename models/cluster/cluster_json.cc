// Tests: tests/cli/command_test.py.
#include "models/cluster/cluster_json.h"

#include <fmt/core.h>

#include <cstdint>

#include "models/base/json.h"
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

double number(double value) {
  return value;
}
template <class Q>
double number(Q value) {
  return value.value();
}

Json figures_json(const Cluster& cluster) {
  Json json = Json::array();
  for_each_figure(cluster, [&json](const char* part, const char* what, const auto& figure) {
    json.push_back({{"part", part},
                    {"what", what},
                    {"unit", unit(figure)},
                    {"value", number(figure.value)},
                    {"low", number(figure.low)},
                    {"high", number(figure.high)},
                    {"provenance", name(figure.provenance)},
                    {"source", figure.source}});
  });
  return json;
}

}  // namespace

std::string to_json(const Cluster& cluster) {
  const Json document = {
      {"schema", "paceline.cluster/1"},
      {"name", cluster.name},
      {"description", cluster.description},
      {"nodes", cluster.nodes},
      {"ranks_per_node", cluster.ranks_per_node},
      {"ranks", cluster.ranks()},
      {"device", cluster.device.name},
      {"intra", cluster.intra.name},
      {"intra_topology", name(cluster.intra_kind)},
      {"nic", cluster.has_nic() ? Json(cluster.nic.name) : Json(nullptr)},
      {"nics_per_node", cluster.has_nic() ? cluster.nics_per_node : 0},
      {"nic_use", name(cluster.nic_use)},
      {"fabric", described_fabric(cluster)},
      {"placement", described_placement(cluster)},
      {"profile", cluster.profile.empty() ? Json(nullptr) : Json(cluster.profile)},
      {"source", cluster.source},
      {"figures", figures_json(cluster)}};
  return document.indented();
}

std::string digest(const Cluster& cluster) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char c : to_json(cluster)) {
    value ^= static_cast<unsigned char>(c);
    value *= 0x100000001b3;
  }
  return fmt::format("{:016x}", value);
}

std::string to_json(const Platform& platform) {
  Json links = Json::array();
  for (const PlatformLink& link : platform.links)
    links.push_back({{"name", link.name},
                     {"bandwidth_bytes_per_s", link.bandwidth.value()},
                     {"latency_s", link.latency.value()},
                     {"is_shared", link.is_shared}});
  const Json document = {{"schema", "paceline.platform/1"},
                         {"name", platform.name},
                         {"hosts", platform.hosts},
                         {"links", std::move(links)}};
  return document.indented();
}

}  // namespace paceline::models
