// Tests: tests/models/cluster_test.cc, tests/models/cluster_hostile_test.cc,
// tests/models/cluster_catalog_test.cc.
#include "models/cluster/part_reader.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "models/cluster/catalog_file.h"
#include "models/cluster/catalog_parts.h"
#include "models/cluster/figure_reader.h"
#include "models/cluster/link_rules.h"

namespace paceline::models {
namespace {

constexpr int most_multiprocessors = 10000;
// The efficiencies of the roofline are assumptions, so that more than all of it may be reached.
constexpr auto roofline_share = [](const std::string& s) { return parse_share(s, 1e-3, 100); };
constexpr int most_tcp_flows = 64;  // NCCL's limit of sockets
constexpr int most_ranks_of_an_entry = 4096;

const std::vector<std::pair<const char*, LinkKind>>& link_kinds() {
  static const std::vector<std::pair<const char*, LinkKind>> kinds = {
      {"nvlink", LinkKind::nvlink},
      {"xgmi", LinkKind::xgmi},
      {"ici", LinkKind::ici},
      {"pcie", LinkKind::pcie},
      {"ethernet", LinkKind::ethernet},
      {"infiniband", LinkKind::infiniband},
      {"omni-path", LinkKind::omni_path},
      {"efa", LinkKind::efa},
      {"shared-memory", LinkKind::shared_memory}};
  return kinds;
}

// The efficiency of devices that do not state theirs.
template <class F>
Figure<double> default_efficiency(const char* key, F parse) {
  const CatalogFile defaults("devices.yaml", "defaults");
  const YAML::Node entry = defaults.entry(key, "default");
  YAML::Node mapping;
  mapping[key] = entry;
  return read_figure(YamlMap(mapping, defaults.file(), "the defaults of devices", {key}), key, {},
                     parse, Zero::refused);
}

// A word of a list of kinds, under `key`. `noun` is for errors.
template <class Kind>
Kind read_word(const YamlMap& map, const std::string& key, const char* noun,
               const std::vector<std::pair<const char*, Kind>>& kinds) {
  return map.parsed(key, [&](const std::string& text) {
    std::vector<std::string> names;
    for (const auto& [known, kind] : kinds) {
      if (known == text) return kind;
      names.emplace_back(known);
    }
    throw unknown_name(noun, text, names);
  });
}

// "9.0" is 90.
int parse_capability(const std::string& text) {
  const double value = parse_number(text, 1, 99);
  const int capability = static_cast<int>(std::lround(value * 10));
  if (std::abs(value * 10 - capability) > 1e-6)
    throw InputError(in_quotes(text) + " is no compute capability", "write major.minor, as 9.0");
  return capability;
}

void read_names(const YamlMap& map, DeviceNames& names) {
  const auto words = [&](const char* key, std::vector<std::string>& into) {
    if (!map.has(key)) return;
    into.clear();
    const YAML::Node node = map.at(key);
    if (!node.IsSequence())
      throw InputError(map.place_of_key(key), fmt::format("{} is no list", key),
                       "write [A100-SXM4-40GB, ...]");
    for (const auto& entry : node) into.push_back(YamlMap::scalar(entry, map.file(), key));
  };
  words("products", names.products);
  words("pci", names.pci);
}

// Reads everything about a device except its figures. A device that states multiprocessors, TF32 or FP16
// matrix units is a GPU.
void read_kind(const YamlMap& map, Device& device) {
  constexpr int first_year = 1990;
  constexpr int last_year = 2100;
  if (map.has("year"))
    device.year = static_cast<int>(map.parsed(
        "year", [](const std::string& s) { return parse_count(s, first_year, last_year); }));
  if (map.has("compute_capability"))
    device.compute_capability = map.parsed("compute_capability", parse_capability);
  if (map.has("nvlink")) device.nvlink_generation = read_count(map, "nvlink", 99);
  device.has_peer_access = map.flag_or("peer_access", device.has_peer_access);
  read_names(map, device.names);
  const bool is_gpu = device.multiprocessors || device.tf32 || device.fp16_tensor;
  if (map.has("library"))
    device.library = map.parsed("library", [](const std::string& text) {
      return value_named(vendor_libraries, "library of collectives", text);
    });
  else if (!map.has("base"))
    device.library = is_gpu ? std::optional(VendorLibrary::nccl) : std::nullopt;
  if (map.has("reduction"))
    device.reduction = read_word<Reduction>(map, "reduction", "time of a reduction",
                                            {{"while-receiving", Reduction::while_receiving},
                                             {"after-receiving", Reduction::after_receiving}});
  else if (!map.has("base"))
    device.reduction = is_gpu ? Reduction::while_receiving : Reduction::after_receiving;
}

bool can_be_tcp(std::optional<LinkKind> kind) {
  return !kind || *kind == LinkKind::ethernet || *kind == LinkKind::infiniband ||
         *kind == LinkKind::omni_path;
}

void read_bandwidth_by_ranks(const YamlMap& map, const Basis& basis, Link& link) {
  const std::string key = "bandwidth_by_ranks";
  const YAML::Node node = map.at(key);
  std::vector<std::string> counts;
  if (node.IsMap()) {
    for (const auto& entry : node) {
      if (entry.first.IsScalar()) counts.push_back(entry.first.Scalar());
    }
  }
  const YamlMap by_ranks(node, map.file(), key, counts);
  if (counts.empty())
    throw InputError(map.place_of_key(key), "bandwidth_by_ranks has no entry",
                     "write {2: 18 GB/s, 4: 36 GB/s}, each from this many ranks in use on");
  link.bandwidth_by_ranks.clear();
  for (const std::string& text : counts) {
    int count = 0;
    try {
      count = static_cast<int>(parse_count(text, 1, most_ranks_of_an_entry));
    } catch (const InputError& error) {
      throw InputError(by_ranks.place_of_key(text), key + ": " + error.problem(), error.remedy());
    }
    if (!link.bandwidth_by_ranks
             .emplace(count, read_figure(by_ranks, text, basis, bandwidth, Zero::refused))
             .second) {
      throw InputError(by_ranks.place_of_key(text), fmt::format("{} ranks stand twice", count),
                       "write each number once");
    }
  }
  link.bandwidth = link.bandwidth_by_ranks.rbegin()->second;
}

// What the link is, and a bandwidth that is stated, listed by ranks, or follows from TCP.
void read_kind_and_bandwidth(const YamlMap& map, const Basis& basis, Link& link) {
  if (map.has("link")) link.kind = read_word(map, "link", "kind of link", link_kinds());
  const Protocol before = link.protocol;
  if (map.has("protocol"))
    link.protocol = read_word<Protocol>(map, "protocol", "protocol",
                                        {{"rdma", Protocol::rdma}, {"tcp", Protocol::tcp}});
  const bool is_tcp = link.protocol == Protocol::tcp;
  if (is_tcp && !can_be_tcp(link.kind)) {
    throw InputError(map.has("protocol") ? map.place_of_key("protocol") : map.place_of_key("link"),
                     fmt::format("TCP over a link of kind {}", name(*link.kind)),
                     "write link: ethernet, infiniband or omni-path, or protocol: rdma");
  }
  if (is_tcp && !link.kind) link.kind = LinkKind::ethernet;
  const bool is_stated = map.has("bandwidth") || map.has("bandwidth_by_ranks");
  if (map.has("bandwidth") && map.has("bandwidth_by_ranks"))
    throw InputError(map.place_of_key("bandwidth_by_ranks"), "bandwidth twice",
                     "write bandwidth or bandwidth_by_ranks");
  if (map.has("flows") && (!is_tcp || is_stated)) {
    throw InputError(map.place_of_key("flows"),
                     is_tcp ? "flows beside a bandwidth" : "flows of a link without TCP",
                     is_tcp ? "leave one of the two out" : "write protocol: tcp, or leave it out");
  }
  if (is_stated) link.tcp_flows.reset();
  if (map.has("bandwidth")) {
    link.bandwidth_by_ranks.clear();
    link.bandwidth = read_figure(map, "bandwidth", basis, bandwidth, Zero::refused);
  } else if (map.has("bandwidth_by_ranks")) {
    read_bandwidth_by_ranks(map, basis, link);
  } else if (!is_tcp && link.tcp_flows) {
    throw InputError(map.place_of_key("protocol"), "protocol: rdma, and the bandwidth is TCP's",
                     "add bandwidth: ...");
  } else if (is_tcp && (before != link.protocol || !map.has("base"))) {
    link.tcp_flows = default_tcp_flows;
  }
  if (map.has("flows")) link.tcp_flows = read_count(map, "flows", most_tcp_flows);
  if (!link.tcp_flows) return;
  link.bandwidth_by_ranks.clear();
  link.bandwidth = tcp_bandwidth(link.line_rate, *link.tcp_flows, 1);
}

}  // namespace

std::string_view name(LinkKind kind) {
  for (const auto& [text, known] : link_kinds()) {
    if (known == kind) return text;
  }
  return "unknown";
}

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

// Reads "transformer: {product: 0.72, attention: 640 TFLOP/s, ...}".
TransformerKernels read_transformer(const YamlMap& device, const Basis& basis) {
  const YamlMap map(device.at("transformer"), device.file(), "transformer",
                    {"product", "of_middle", "of_small", "attention", "half_rate_sequence",
                     "flash-1", "flash-2", "flash-3", "fp8", "reached", "provenance", "source"});
  require(map, {"product", "of_middle", "of_small", "attention", "half_rate_sequence", "reached"});
  const Basis own = map.has("source") ? basis_of(map) : basis;
  TransformerKernels kernels;
  override_figure(map, "product", own, share, kernels.product);
  kernels.middle_share = map.parsed("of_middle", share);
  kernels.small_share = map.parsed("of_small", share);
  override_figure(map, "attention", own, flop_rate, kernels.attention);
  for (const auto& [kernel, name] : attention_kernels)
    override_figure(map, std::string(name), own, flop_rate,
                    kernels.attention_by[static_cast<std::size_t>(kernel)]);
  override_figure(map, "reached", own, roofline_share, kernels.reached);
  if (map.has("fp8")) override_figure(map, "fp8", own, roofline_share, kernels.fp8);
  kernels.half_rate_sequence = map.parsed(
      "half_rate_sequence", [](const std::string& text) { return parse_number(text, 1, 1e6); });
  return kernels;
}

Device read_device(const YAML::Node& node, const std::string& file, const std::string& name) {
  const YamlMap map(node, file, "device " + name,
                    {"base",
                     "name",
                     "description",
                     "provenance",
                     "source",
                     "fp32",
                     "tf32",
                     "fp16",
                     "fp16_tensor",
                     "bf16",
                     "memory_bandwidth",
                     "memory",
                     "compute_efficiency",
                     "memory_efficiency",
                     "roofline_efficiency",
                     "roofline_efficiency_mixed",
                     "transformer",
                     "power",
                     "multiprocessors",
                     "cooling",
                     "reduction",
                     "year",
                     "library",
                     "compute_capability",
                     "nvlink",
                     "peer_access",
                     "products",
                     "pci"});
  const Basis basis = basis_of(map);
  Device device;
  device.name = name;
  if (map.has("base")) {
    device = map.parsed("base", [](const std::string& base) { return catalog_device(base); });
  } else {
    require(map, {"fp32", "memory_bandwidth", "memory"});
    if (!map.has("compute_efficiency"))
      device.compute_efficiency = default_efficiency("compute_efficiency", share);
    if (!map.has("memory_efficiency"))
      device.memory_efficiency = default_efficiency("memory_efficiency", share);
    const bool is_gpu = map.has("multiprocessors");
    device.roofline_efficiency = default_efficiency(
        is_gpu ? "roofline_efficiency" : "roofline_efficiency_processor", roofline_share);
    device.roofline_efficiency_mixed = default_efficiency(
        is_gpu ? "roofline_efficiency_mixed" : "roofline_efficiency_processor", roofline_share);
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
  override_figure(map, "power", basis, power, device.power);
  override_figure(map, "roofline_efficiency", basis, roofline_share, device.roofline_efficiency);
  override_figure(map, "roofline_efficiency_mixed", basis, roofline_share,
                  device.roofline_efficiency_mixed);
  if (map.has("transformer")) device.transformer = read_transformer(map, basis);
  if (map.has("multiprocessors"))
    device.multiprocessors = read_count(map, "multiprocessors", most_multiprocessors);
  if (map.has("cooling"))
    device.cooling =
        read_word<Cooling>(map, "cooling", "kind of cooling",
                           {{"passive", Cooling::passive}, {"geforce", Cooling::geforce}});
  read_kind(map, device);
  return device;
}

std::vector<std::string> link_keys() {
  return {"base",    "description", "provenance", "source", "line_rate",          "bandwidth",
          "latency", "link",        "protocol",   "flows",  "bandwidth_by_ranks", "told_latency"};
}

Link read_link(const YamlMap& map, const std::string& name, bool states_bandwidth) {
  const Basis basis = basis_of(map);
  Link link;
  link.name = name;
  if (map.has("base")) {
    link = map.parsed("base", [](const std::string& base) { return catalog_link(base); });
  } else {
    require(map, {"line_rate", "latency"});
    const bool is_tcp = map.text_or("protocol", "") == "tcp";
    if (states_bandwidth && !map.has("bandwidth_by_ranks") && !is_tcp) require(map, {"bandwidth"});
  }
  link.description = map.text_or("description", link.description);
  override_figure(map, "line_rate", basis, bandwidth, link.line_rate);
  read_kind_and_bandwidth(map, basis, link);
  override_figure(map, "latency", basis, seconds, link.latency, Zero::allowed);
  if (map.has("told_latency")) link.told_latency = map.parsed("told_latency", parse_seconds);
  return link;
}

Link read_link(const YAML::Node& node, const std::string& file, const std::string& name) {
  return read_link(YamlMap(node, file, "link " + name, link_keys()), name);
}

}  // namespace paceline::models
