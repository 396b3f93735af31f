// Tests: tests/models/cluster_test.cc, tests/models/cluster_hostile_test.cc.
#include "models/cluster/cluster_reader.h"

#include <fmt/format.h>

#include <filesystem>

#include "models/base/limits.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/cluster/catalog.h"
#include "models/cluster/placement.h"
#include "models/cluster/simgrid_xml.h"

namespace paceline::models {
namespace {

constexpr int most_ranks = 1 << 24;
constexpr int most_nics = 256;        // of a node
constexpr int most_all_to_all = 256;  // ranks of a node, with a link between every two
constexpr double most_oversubscription = 1000;

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

// What parse makes of the text of a scalar that no key of a mapping names.
template <class F>
auto parsed_item(const YAML::Node& node, const YamlMap& map, const std::string& what, F parse) {
  return YamlMap::parsed_scalar(node, map.file(), what, parse);
}

template <class Kinds>
auto kind_of(const Kinds& kinds, const char* noun, const std::string& text) {
  std::vector<std::string> names;
  for (const auto& [kind, known] : kinds) {
    if (known == text) return kind;
    names.emplace_back(known);
  }
  throw unknown_name(noun, text, names);
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

void read_intra(const YamlMap& map, Cluster& cluster) {
  const YAML::Node node = map.at("intra");
  if (!node.IsMap()) {
    cluster.intra = cluster_link(map, "intra");
    return;
  }
  std::vector<std::string> keys = link_keys;
  keys.emplace_back("topology");
  const YamlMap intra(node, map.file(), "link intra", keys);
  cluster.intra = link_from(intra, "intra");
  if (!intra.has("topology")) return;
  cluster.intra_kind = intra.parsed("topology", [](const std::string& text) {
    return kind_of(intra_kinds, "topology of a node", text);
  });
  if (cluster.intra_kind == IntraKind::all_to_all && cluster.ranks_per_node > most_all_to_all) {
    throw InputError(
        intra.place_of_key("topology"),
        fmt::format("a link between every two of {} ranks", cluster.ranks_per_node),
        fmt::format("write switch or ring, or at most {} ranks_per_node", most_all_to_all));
  }
}

double oversubscription(const YamlMap& map) {
  return map.parsed("oversubscription", [](const std::string& text) {
    return parse_number(text, 1, most_oversubscription);
  });
}

// From the leaves up. What a switch joins is called by its level.
void read_levels(const YamlMap& map, Fabric& fabric) {
  static constexpr std::array<const char*, 2> members = {"nodes", "leaves"};
  const YAML::Node list = map.at("levels");
  if (!list.IsSequence() || list.size() < 1 || list.size() > members.size()) {
    throw InputError(map.place_of_key("levels"), "levels is no list of one or two levels",
                     "write [{nodes: 16, oversubscription: 2}] for leaves and a spine, and "
                     "{leaves: 8, oversubscription: 4} behind it for three levels");
  }
  std::int64_t nodes = 1;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const YamlMap level(list[i], map.file(), "a level", {members[i], "oversubscription"});
    FatTreeLevel read;
    read.members = count(level, members[i], most_ranks);
    if (level.has("oversubscription")) read.oversubscription = oversubscription(level);
    nodes *= read.members;
    if (nodes > most_ranks)
      throw InputError(level.place_of_key(members[i]),
                       fmt::format("{} nodes under one switch are too many", nodes),
                       fmt::format("at most {}", most_ranks));
    fabric.levels.push_back(read);
  }
}

void read_shape(const YamlMap& map, const Cluster& cluster, Fabric& fabric) {
  const YAML::Node list = map.at("shape");
  if (!list.IsSequence() || list.size() < 2 || list.size() > 3) {
    throw InputError(map.place_of_key("shape"), "shape is no list of two or three numbers",
                     "write the nodes along each axis, as in [8, 8]");
  }
  std::int64_t nodes = 1;
  for (const YAML::Node& item : list) {
    fabric.shape.push_back(static_cast<int>(parsed_item(
        item, map, "shape", [](const auto& text) { return parse_count(text, 1, most_ranks); })));
    nodes *= fabric.shape.back();
    if (nodes > most_ranks) break;
  }
  if (nodes != cluster.nodes) {
    throw InputError(
        map.place_of_key("shape"),
        nodes > most_ranks ? "shape is of too many nodes"
                           : fmt::format("shape is of {} nodes", nodes),
        fmt::format("choose numbers whose product is the cluster's {}", cluster.nodes));
  }
}

// Of a fabric that is a mapping with a kind, after nodes and NICs were read.
Fabric read_fabric(const YamlMap& cluster_map, const Basis& basis, Cluster& cluster) {
  const YAML::Node node = cluster_map.at("fabric");
  const YamlMap any(node, cluster_map.file(), "the fabric",
                    {"kind", "levels", "shape", "oversubscription", "hop_latency", "platform"});
  Fabric fabric;
  fabric.kind = any.parsed(
      "kind", [](const std::string& text) { return kind_of(fabric_kinds, "fabric", text); });
  std::vector<std::string> keys = {"kind"};
  if (fabric.kind != FabricKind::flat) keys.emplace_back("hop_latency");
  if (fabric.kind == FabricKind::fat_tree) keys.emplace_back("levels");
  if (fabric.kind == FabricKind::torus) keys.emplace_back("shape");
  if (fabric.kind == FabricKind::rail) keys.emplace_back("oversubscription");
  const YamlMap map(node, cluster_map.file(), fmt::format("a {} fabric", name(fabric.kind)), keys);
  const bool affine = cluster.nic_use == NicUse::affinity;
  if (fabric.kind == FabricKind::fat_tree) read_levels(map, fabric);
  if (fabric.kind == FabricKind::torus) {
    read_shape(map, cluster, fabric);
    if (affine)
      throw InputError(map.place(), "a torus of NICs by affinity",
                       "a node's neighbours are joined by all its NICs: write use: striped");
  }
  if (fabric.kind == FabricKind::rail) {
    if (map.has("oversubscription")) fabric.oversubscription = oversubscription(map);
    if (!affine || cluster.nics_per_node < 2)
      throw InputError(map.place(), "rails without NICs of their own",
                       "write nic: {base: ..., count: 2 or more, use: affinity}");
  }
  override_figure(map, "hop_latency", basis, seconds, cluster.hop_latency, Zero::allowed);
  if (cluster.hop_latency) fabric.hop_latency = cluster.hop_latency->value;
  return fabric;
}

// A fabric that is a word: flat, for the others need more than a name.
void read_plain_fabric(const YamlMap& map) {
  const FabricKind kind = map.parsed(
      "fabric", [](const std::string& text) { return kind_of(fabric_kinds, "fabric", text); });
  if (kind == FabricKind::flat) return;
  throw InputError(map.place_of_key("fabric"),
                   fmt::format("fabric: {} needs more than its name", name(kind)),
                   kind == FabricKind::fat_tree
                       ? "write {kind: fat-tree, levels: [{nodes: 16, oversubscription: 2}]}"
                   : kind == FabricKind::torus ? "write {kind: torus, shape: [8, 8]}"
                                               : "write {kind: rail, oversubscription: 1}");
}

// The path of `name` as it stands in `file`.
std::string beside(const std::string& file, const std::string& name) {
  return (std::filesystem::path(file).parent_path() / name).string();
}

// The platform in place of nodes, NICs and fabric, if the fabric is one.
void read_platform(const YamlMap& map, const FileReader& read, Cluster& cluster) {
  const YamlMap fabric(map.at("fabric"), map.file(), "a fabric that is a platform", {"platform"});
  for (const char* key : {"intra", "nic"}) {
    if (map.has(key))
      throw InputError(map.place_of_key(key), fmt::format("{} beside a platform", key),
                       "a platform has links of its own: leave it out");
  }
  const std::string path = beside(map.file(), fabric.text("platform"));
  if (!read)
    throw InputError(fabric.place_of_key("platform"), "a platform cannot be read here",
                     "give the cluster as a file");
  cluster.platform = std::make_shared<const Platform>(parse_simgrid_xml(read(path), path));
  const auto hosts = static_cast<int>(cluster.platform->hosts.size());
  cluster.ranks_per_node = map.has("ranks_per_node") ? count(map, "ranks_per_node", most_ranks) : 1;
  cluster.nodes = map.has("nodes") ? count(map, "nodes", most_ranks)
                                   : std::max(1, hosts / cluster.ranks_per_node);
  if (static_cast<std::int64_t>(cluster.nodes) * cluster.ranks_per_node != hosts) {
    throw InputError(fabric.place_of_key("platform"),
                     fmt::format("the platform has {} hosts, not {} nodes x {} ranks", hosts,
                                 cluster.nodes, cluster.ranks_per_node),
                     "each host is a rank: make the product of nodes and ranks_per_node equal");
  }
  if (!map.has("host_link"))
    throw InputError(fabric.place_of_key("platform"), "a platform and no host_link",
                     "add how samples get to a device, as in host_link: pcie3-x16");
}

void read_placement(const YamlMap& map, Cluster& cluster) {
  if (!map.has("placement")) return;
  const YAML::Node node = map.at("placement");
  if (!node.IsSequence()) {
    cluster.placement =
        map.parsed("placement", [](const std::string& text) { return placement_from_name(text); });
    return;
  }
  for (const YAML::Node& item : node) {
    cluster.slots.push_back(
        static_cast<int>(parsed_item(item, map, "placement", [](const std::string& text) {
          return parse_count(text, 0, most_ranks);
        })));
  }
  if (cluster.slots.empty())
    throw InputError(map.place_of_key("placement"), "a placement of no rank",
                     "write node-major, round-robin, or the slot of each rank");
  try {
    check_slots(cluster.slots, cluster);
  } catch (const InputError& error) {
    throw error.at(map.place_of_key("placement"));
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

Cluster read_cluster(const YAML::Node& node, const std::string& file, const std::string& name,
                     const FileReader& read) {
  std::vector<std::string> keys = {"description", "source", "nodes",  "ranks_per_node", "device",
                                   "intra",       "nic",    "fabric", "placement",      "host_link",
                                   "storage",     "decode", "profile"};
  if (name.empty()) keys.insert(keys.begin(), "cluster");
  const YamlMap map(node, file, "the cluster", keys);
  const Basis basis = basis_of(map);
  Cluster cluster;
  cluster.name = name.empty() ? checked_name(map, "cluster", "cluster") : name;
  cluster.description = map.text_or("description", "");
  cluster.source = map.has("source") ? map.text("source") : file;
  const bool has_fabric_map = map.has("fabric") && map.at("fabric").IsMap();
  const bool has_platform = has_fabric_map && map.at("fabric")["platform"].IsDefined();
  if (has_platform) {
    read_platform(map, read, cluster);
  } else {
    cluster.nodes = count(map, "nodes", most_ranks);
    cluster.ranks_per_node = count(map, "ranks_per_node", most_ranks);
  }
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
  if (!has_platform) {
    read_intra(map, cluster);
    read_nics(map, cluster);
    if (has_fabric_map) {
      cluster.fabric = read_fabric(map, basis, cluster);
    } else if (map.has("fabric")) {
      read_plain_fabric(map);
    }
  }
  read_placement(map, cluster);
  if (map.has("host_link")) cluster.host_link = cluster_link(map, "host_link");
  override_figure(map, "storage", basis, bandwidth, cluster.storage);
  override_figure(map, "decode", basis, rate, cluster.decode_per_node);
  cluster.profile = map.text_or("profile", "");
  return cluster;
}

}  // namespace paceline::models
