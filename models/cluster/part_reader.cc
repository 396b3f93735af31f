// Tests: tests/models/cluster_test.cc, tests/models/cluster_hostile_test.cc,
// tests/models/cluster_catalog_test.cc.
#include "models/cluster/part_reader.h"

#include "models/cluster/catalog_file.h"
#include "models/cluster/catalog_parts.h"
#include "models/cluster/figure_reader.h"

namespace paceline::models {
namespace {

// The efficiency of devices that do not state theirs.
Figure<double> default_efficiency(const char* key) {
  const CatalogFile defaults("devices.yaml", "defaults");
  const YAML::Node entry = defaults.entry(key, "default");
  YAML::Node mapping;
  mapping[key] = entry;
  return read_figure(YamlMap(mapping, defaults.file(), "the defaults of devices", {key}), key, {},
                     share, Zero::refused);
}

}  // namespace

Device catalog_device(std::string_view name) {
  const CatalogFile file("devices.yaml", "devices");
  return read_device(file.entry(name, "device"), file.file(), std::string(name));
}

Link catalog_link(std::string_view name) {
  const CatalogFile file("links.yaml", "links");
  return read_link(file.entry(name, "link"), file.file(), std::string(name));
}

std::vector<CatalogEntry> catalog_devices() {
  return CatalogFile("devices.yaml", "devices").entries();
}
std::vector<CatalogEntry> catalog_links() {
  return CatalogFile("links.yaml", "links").entries();
}

Device read_device(const YAML::Node& node, const std::string& file, const std::string& name) {
  const YamlMap map(
      node, file, "device " + name,
      {"base", "name", "description", "provenance", "source", "fp32", "tf32", "fp16", "fp16_tensor",
       "bf16", "memory_bandwidth", "memory", "compute_efficiency", "memory_efficiency"});
  const Basis basis = basis_of(map);
  Device device;
  device.name = name;
  if (map.has("base")) {
    device = map.parsed("base", [](const std::string& base) { return catalog_device(base); });
  } else {
    require(map, {"fp32", "memory_bandwidth", "memory"});
    if (!map.has("compute_efficiency"))
      device.compute_efficiency = default_efficiency("compute_efficiency");
    if (!map.has("memory_efficiency"))
      device.memory_efficiency = default_efficiency("memory_efficiency");
  }
  if (map.has("name")) device.name = checked_name(map, "name", "device");
  device.description = map.text_or("description", device.description);
  override_figure(map, "fp32", basis, flop_rate, device.fp32);
  override_figure(map, "tf32", basis, flop_rate, device.tf32);
  override_figure(map, "fp16", basis, flop_rate, device.fp16);
  override_figure(map, "fp16_tensor", basis, flop_rate, device.fp16_tensor);
  override_figure(map, "bf16", basis, flop_rate, device.bf16);
  override_figure(map, "memory_bandwidth", basis, bandwidth, device.memory_bandwidth);
  override_figure(map, "memory", basis, bytes, device.memory);
  override_figure(map, "compute_efficiency", basis, share, device.compute_efficiency);
  override_figure(map, "memory_efficiency", basis, share, device.memory_efficiency);
  return device;
}

std::vector<std::string> link_keys() {
  return {"base", "description", "provenance", "source", "line_rate", "bandwidth", "latency"};
}

Link read_link(const YamlMap& map, const std::string& name) {
  const Basis basis = basis_of(map);
  Link link;
  link.name = name;
  if (map.has("base")) {
    link = map.parsed("base", [](const std::string& base) { return catalog_link(base); });
  } else {
    require(map, {"line_rate", "bandwidth", "latency"});
  }
  link.description = map.text_or("description", link.description);
  override_figure(map, "line_rate", basis, bandwidth, link.line_rate);
  override_figure(map, "bandwidth", basis, bandwidth, link.bandwidth);
  override_figure(map, "latency", basis, seconds, link.latency, Zero::allowed);
  return link;
}

Link read_link(const YAML::Node& node, const std::string& file, const std::string& name) {
  return read_link(YamlMap(node, file, "link " + name, link_keys()), name);
}

}  // namespace paceline::models
