// Tests: tests/models/cluster_test.cc, tests/models/cluster_hostile_test.cc.
#include "models/cluster/cluster_reader.h"

#include <fmt/format.h>

#include "models/base/limits.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/cluster/catalog.h"

namespace paceline::models {
namespace {

constexpr int most_ranks = 1 << 24;
constexpr int most_nics = 256;  // of a node

// What figures of an entry rest on if they do not say so themselves.
struct Basis {
  Provenance provenance = Provenance::datasheet;
  std::string source;  // empty: the line of the figure itself
};

Basis basis_of(const YamlMap& map) {
  Basis basis;
  if (map.has("provenance"))
    basis.provenance =
        map.parsed("provenance", [](const std::string& s) { return provenance_from_name(s); });
  if (map.has("source")) basis.source = map.text("source");
  return basis;
}

template <class Q>
double plain(Q quantity) {
  if constexpr (std::is_same_v<Q, double>) {
    return quantity;
  } else {
    return quantity.value();
  }
}

enum class Zero { allowed, refused };

template <class F>
auto read_figure(const YamlMap& map, const std::string& key, const Basis& basis, F parse,
                 Zero zero) {
  using Q = decltype(parse(std::string()));
  const auto parse_checked = [&](const std::string& text) {
    const Q value = parse(text);
    if (zero == Zero::refused && plain(value) <= 0)
      throw InputError(fmt::format("{} is not more than 0", in_quotes(text)), "");
    if constexpr (!std::is_same_v<Q, double>) {
      if (!within_limits(value)) {
        throw InputError(
            fmt::format("{} is out of range", in_quotes(text)),
            fmt::format("write {} to {}", to_text(Limits<Q>::least), to_text(Limits<Q>::most)));
      }
    }
    return value;
  };
  const YAML::Node node = map.at(key);
  Basis own = basis;
  if (own.source.empty()) own.source = fmt::format("{}:{}", map.file(), map.place_of_key(key).line);
  if (!node.IsMap()) {
    const Q value = map.parsed(key, parse_checked);
    return Figure<Q>::exact(value, own.provenance, own.source);
  }
  const YamlMap figure(node, map.file(), "figure " + key,
                       {"value", "low", "high", "provenance", "source"});
  if (figure.has("provenance"))
    own.provenance =
        figure.parsed("provenance", [](const std::string& s) { return provenance_from_name(s); });
  if (figure.has("source")) own.source = figure.text("source");
  Figure<Q> result =
      Figure<Q>::exact(figure.parsed("value", parse_checked), own.provenance, own.source);
  if (figure.has("low")) result.low = figure.parsed("low", parse_checked);
  if (figure.has("high")) result.high = figure.parsed("high", parse_checked);
  if (plain(result.low) > plain(result.value) || plain(result.value) > plain(result.high)) {
    throw InputError(place_of(node, map.file()),
                     fmt::format("{}: its value is not between low and high", key),
                     "write low <= value <= high");
  }
  return result;
}

constexpr auto bandwidth = [](const std::string& s) { return parse_bandwidth(s); };
constexpr auto seconds = [](const std::string& s) { return parse_seconds(s); };
constexpr auto flop_rate = [](const std::string& s) { return parse_flop_rate(s); };
constexpr auto bytes = [](const std::string& s) { return parse_bytes(s); };
constexpr auto rate = [](const std::string& s) { return parse_rate(s); };
constexpr auto share = [](const std::string& s) { return parse_number(s, 1e-3, 1); };

template <class Target, class F>
void override_figure(const YamlMap& map, const std::string& key, const Basis& basis, F parse,
                     Target& target, Zero zero = Zero::refused) {
  if (map.has(key)) target = read_figure(map, key, basis, parse, zero);
}

void require(const YamlMap& map, std::initializer_list<const char*> keys) {
  for (const char* key : keys) (void)map.at(key);
}

int count(const YamlMap& map, const std::string& key, int most) {
  return static_cast<int>(
      map.parsed(key, [most](const std::string& s) { return parse_count(s, 1, most); }));
}

// A name that tables and messages can show. `kind` is the noun.
std::string checked_name(const YamlMap& map, const std::string& key, const char* kind) {
  std::string name = map.text(key);
  if (name.empty() || in_quotes(name) != "'" + name + "'") {
    throw InputError(map.place_of_key(key),
                     fmt::format("{} is no name for a {}", in_quotes(name), kind),
                     "choose another, up to 60 printable characters");
  }
  return name;
}

const std::vector<std::string> link_keys = {"base",      "description", "provenance", "source",
                                            "line_rate", "bandwidth",   "latency"};

Link link_from(const YamlMap& map, const std::string& name) {
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

// A link of a cluster: a name of the catalogue, or a mapping.
Link cluster_link(const YamlMap& cluster, const std::string& key) {
  const YAML::Node node = cluster.at(key);
  if (node.IsMap()) return read_link(node, cluster.file(), key);
  return cluster.parsed(key, [](const std::string& name) { return catalog_link(name); });
}

void read_nics(const YamlMap& map, Cluster& cluster) {
  const YAML::Node node = map.at("nic");
  if (!node.IsMap()) {
    cluster.nic = cluster_link(map, "nic");
    return;
  }
  std::vector<std::string> keys = link_keys;
  keys.insert(keys.end(), {"count", "use"});
  const YamlMap nic(node, map.file(), "nic", keys);
  cluster.nic = link_from(nic, "nic");
  if (nic.has("count")) cluster.nics_per_node = count(nic, "count", most_nics);
  if (nic.has("use")) {
    cluster.nic_use = nic.parsed("use", [](const std::string& use) {
      if (use == "striped") return NicUse::striped;
      if (use == "affinity") return NicUse::affinity;
      throw unknown_name("use of NICs", use, {"striped", "affinity"});
    });
  }
  if (cluster.nic_use == NicUse::affinity && cluster.nics_per_node > cluster.ranks_per_node) {
    throw InputError(nic.place_of_key("count"),
                     fmt::format("{} NICs for {} ranks with affinity", cluster.nics_per_node,
                                 cluster.ranks_per_node),
                     "a rank uses one NIC: write use: striped, or at most one NIC for each rank");
  }
}

Figure<double> default_efficiency(const char* key) {
  // Any device of the catalogue carries the defaults.
  static constexpr std::string_view any = "p40";
  const Device device = catalog_device(any);
  return std::string_view(key) == "compute_efficiency" ? device.compute_efficiency
                                                       : device.memory_efficiency;
}

}  // namespace

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
    // The catalogue's own devices get the defaults of their file.
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

Link read_link(const YAML::Node& node, const std::string& file, const std::string& name) {
  return link_from(YamlMap(node, file, "link " + name, link_keys), name);
}

Cluster read_cluster(const YAML::Node& node, const std::string& file, const std::string& name) {
  std::vector<std::string> keys = {"description", "source",  "nodes",  "ranks_per_node",
                                   "device",      "intra",   "nic",    "fabric",
                                   "host_link",   "storage", "decode", "profile"};
  if (name.empty()) keys.insert(keys.begin(), "cluster");
  const YamlMap map(node, file, "the cluster", keys);
  const Basis basis = basis_of(map);
  Cluster cluster;
  cluster.name = name.empty() ? checked_name(map, "cluster", "cluster") : name;
  cluster.description = map.text_or("description", "");
  cluster.source = map.has("source") ? map.text("source") : file;
  cluster.nodes = count(map, "nodes", most_ranks);
  cluster.ranks_per_node = count(map, "ranks_per_node", most_ranks);
  if (static_cast<std::int64_t>(cluster.nodes) * cluster.ranks_per_node > most_ranks) {
    throw InputError(
        map.place_of_key("nodes"),
        fmt::format("{} nodes x {} ranks are too many", cluster.nodes, cluster.ranks_per_node),
        fmt::format("at most {} ranks", most_ranks));
  }
  const YAML::Node device = map.at("device");
  cluster.device =
      device.IsMap() ? read_device(device, file, "device")
                     : map.parsed("device", [](const std::string& n) { return catalog_device(n); });
  cluster.intra = cluster_link(map, "intra");
  read_nics(map, cluster);
  const std::string fabric = map.text_or("fabric", "flat");
  if (fabric != "flat") {
    const InputError error = unknown_name("fabric", fabric, {"flat"});
    throw InputError(map.place_of_key("fabric"), error.problem(), error.remedy());
  }
  if (map.has("host_link")) cluster.host_link = cluster_link(map, "host_link");
  override_figure(map, "storage", basis, bandwidth, cluster.storage);
  override_figure(map, "decode", basis, rate, cluster.decode_per_node);
  cluster.profile = map.text_or("profile", "");
  return cluster;
}

}  // namespace paceline::models
