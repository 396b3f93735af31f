// Tests: tests/models/cluster_test.cc, tests/models/cluster_hostile_test.cc.
#include "models/cluster/cluster_reader.h"

#include <fmt/core.h>

#include <filesystem>

#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/cluster/catalog_parts.h"
#include "models/cluster/effects_reader.h"
#include "models/cluster/expenses_reader.h"
#include "models/cluster/figure_reader.h"
#include "models/cluster/link_rules.h"
#include "models/cluster/part_reader.h"
#include "models/cluster/placement.h"
#include "models/cluster/simgrid_xml.h"
#include "models/cluster/yaml.h"

namespace paceline::models {
namespace {

constexpr int most_ranks = 1 << 24;
constexpr int most_nics = 256;        // in a node
constexpr int most_all_to_all = 256;  // ranks of a node that has a link between every two
constexpr double most_oversubscription = 1000;

// Parses the text of a scalar that is not the value of a key, such as an item of a list.
template <class F>
auto parsed_item(const YAML::Node& node, const YamlMap& map, const std::string& what, F parse) {
  return YamlMap::parsed_scalar(node, map.file(), what, parse);
}

// A link of a cluster: the name of one in the catalogue, or a mapping.
Link cluster_link(const YamlMap& cluster, const std::string& key) {
  const YAML::Node node = cluster.at(key);
  if (node.IsMap()) return read_link(node, cluster.file(), key);
  return cluster.parsed(key, [](const std::string& name) { return catalog_link(name); });
}

// The number of ranks in use is that of a node, so only `intra` can depend on it.
void refuse_bandwidth_by_ranks(const YamlMap& map, const std::string& key, const Link& link) {
  if (link.bandwidth_by_ranks.empty()) return;
  throw InputError(map.place_of_key(key),
                   fmt::format("{} with a bandwidth by the ranks of a node", key),
                   "only intra takes bandwidth_by_ranks: state one bandwidth");
}

// How NICs reach the devices' memory, which says their bandwidth where the file does not.
void read_way_to_devices(const YamlMap& nic, Cluster& cluster) {
  for (const char* key : {"gpudirect", "distance"}) {
    if (nic.has(key) && cluster.nic.protocol == Protocol::tcp)
      throw InputError(nic.place_of_key(key), fmt::format("{} of a NIC with TCP", key),
                       "leave it out: TCP goes through the host");
  }
  cluster.gpudirect = nic.flag_or("gpudirect", true);
  if (nic.has("distance"))
    cluster.nic_distance = nic.parsed("distance", [](const std::string& text) {
      return value_named(nic_distances, "distance of a NIC", text);
    });
  else if (nic.has("gpudirect") && cluster.gpudirect)
    cluster.nic_distance = NicDistance::pxb;  // NCCL takes GPUDirect no farther by default
  if (nic.has("bandwidth")) return;
  cluster.nic.bandwidth = cluster.gpudirect ? bandwidth_at_distance(cluster)
                                            : bandwidth_without_gpudirect(cluster.nic.line_rate);
}

void read_nics(const YamlMap& map, Cluster& cluster) {
  const YAML::Node node = map.at("nic");
  const auto finish = [&] {
    refuse_bandwidth_by_ranks(map, "nic", cluster.nic);
    if (cluster.nic.tcp_flows)
      cluster.nic.bandwidth =
          tcp_bandwidth(cluster.nic.line_rate, *cluster.nic.tcp_flows, cluster.ranks_per_node);
  };
  if (!node.IsMap()) {
    cluster.nic = cluster_link(map, "nic");
    finish();
    cluster.nic.bandwidth = bandwidth_at_distance(cluster);
    return;
  }
  std::vector<std::string> keys = link_keys();
  keys.insert(keys.end(), {"count", "use", "gpudirect", "distance"});
  const YamlMap nic(node, map.file(), "nic", keys);
  // Without GPUDirect the bandwidth follows from the line rate.
  const bool has_gpudirect = nic.flag_or("gpudirect", true);
  cluster.nic = read_link(nic, "nic", has_gpudirect);
  finish();
  if (nic.has("count")) cluster.nics_per_node = read_count(nic, "count", most_nics);
  read_way_to_devices(nic, cluster);
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
  std::vector<std::string> keys = link_keys();
  keys.emplace_back("topology");
  const YamlMap intra(node, map.file(), "link intra", keys);
  cluster.intra = read_link(intra, "intra");
  if (!intra.has("topology")) return;
  cluster.intra_kind = intra.parsed("topology", [](const std::string& text) {
    return value_named(intra_kinds, "topology of a node", text);
  });
  if (cluster.intra_kind == IntraKind::all_to_all && cluster.ranks_per_node > most_all_to_all) {
    throw InputError(
        intra.place_of_key("topology"),
        fmt::format("a link between every two of {} ranks", cluster.ranks_per_node),
        fmt::format("write switch or ring, or at most {} ranks_per_node", most_all_to_all));
  }
}

// What ranks of a node share, after `intra` was read.
void read_host(const YamlMap& map, const Basis& basis, Cluster& cluster) {
  const YamlMap read(
      map.at("host"), map.file(), "host",
      {"peer_to_peer", "sockets", "crossing", "memory_bandwidth", "lane", "switches", "uplink"});
  if (cluster.platform != nullptr)
    throw InputError(map.place_of_key("host"), "host beside a platform",
                     "a platform has links of its own: leave it out");
  if (cluster.intra_kind != IntraKind::switched)
    throw InputError(map.place_of_key("host"), "host, and ranks joined by links between them",
                     "write topology: switch for intra, or leave it out");
  Host host;
  host.peer_to_peer = read.flag_or("peer_to_peer", true);
  const auto count = [&](const char* key, const char* figure, int& target) {
    if (read.has(key)) target = read_count(read, key, most_nics);
    if (read.has(figure) && !read.has(key))
      throw InputError(read.place_of_key(figure), fmt::format("{} without {}", figure, key),
                       fmt::format("add {}: 2, or as many as a node has", key));
    if (target > cluster.ranks_per_node)
      throw InputError(read.place_of_key(key),
                       fmt::format("{} {} for {} ranks", target, key, cluster.ranks_per_node),
                       "at most one for each rank of a node");
  };
  count("sockets", "crossing", host.sockets);
  count("switches", "uplink", host.switches);
  override_figure(read, "crossing", basis, bandwidth, host.crossing);
  override_figure(read, "memory_bandwidth", basis, bandwidth, host.memory_bandwidth);
  override_figure(read, "uplink", basis, bandwidth, host.uplink);
  if (read.has("lane")) {
    host.lane = cluster_link(read, "lane");
    refuse_bandwidth_by_ranks(read, "lane", *host.lane);
  }
  if (!host.peer_to_peer && (host.lane ? *host.lane : cluster.intra).is(LinkKind::shared_memory))
    throw InputError(read.place_of_key("peer_to_peer"),
                     "the way through the host twice: the link has it in its bandwidth",
                     "write lane: pcie3-x16 or as it is, or leave peer_to_peer out");
  cluster.host = std::move(host);
}

double oversubscription(const YamlMap& map) {
  return map.parsed("oversubscription", [](const std::string& text) {
    return parse_number(text, 1, most_oversubscription);
  });
}

// Reads the levels of a fat tree from the leaves up. A switch's members are named by its level.
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
    read.members = read_count(level, members[i], most_ranks);
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
        nodes > most_ranks ? "shape has too many nodes" : fmt::format("shape has {} nodes", nodes),
        fmt::format("choose numbers whose product is the cluster's {}", cluster.nodes));
  }
}

// Reads a fabric that is a mapping with a kind, after nodes and NICs were read.
Fabric read_fabric(const YamlMap& cluster_map, const Basis& basis, Cluster& cluster) {
  const YAML::Node node = cluster_map.at("fabric");
  const YamlMap any(node, cluster_map.file(), "the fabric",
                    {"kind", "levels", "shape", "oversubscription", "hop_latency", "platform"});
  Fabric fabric;
  fabric.kind = any.parsed(
      "kind", [](const std::string& text) { return value_named(fabric_kinds, "fabric", text); });
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

// Reads a fabric that is a word. It must be flat, because the others need more than a name.
void read_plain_fabric(const YamlMap& map) {
  const FabricKind kind = map.parsed(
      "fabric", [](const std::string& text) { return value_named(fabric_kinds, "fabric", text); });
  if (kind == FabricKind::flat) return;
  throw InputError(map.place_of_key("fabric"),
                   fmt::format("fabric: {} needs more than its name", name(kind)),
                   kind == FabricKind::fat_tree
                       ? "write {kind: fat-tree, levels: [{nodes: 16, oversubscription: 2}]}"
                   : kind == FabricKind::torus ? "write {kind: torus, shape: [8, 8]}"
                                               : "write {kind: rail, oversubscription: 1}");
}

// `effects: none`, or a mapping of those that differ from the catalogue's.
void read_cluster_effects(const YamlMap& map, Cluster& cluster) {
  cluster.effects = cluster.device.multiprocessors ? catalog_effects(cluster.device)
                                                   : catalog_processor_effects();
  if (!map.has("effects")) return;
  const YAML::Node node = map.at("effects");
  if (node.IsMap()) {
    cluster.effects = read_effects(node, map.file(), *std::move(cluster.effects));
  } else if (map.text("effects") == "none") {
    cluster.effects.reset();
  } else {
    throw InputError(map.place_of_key("effects"),
                     fmt::format("effects: {}", in_quotes(map.text("effects"))),
                     "write none, or those that differ, as in {rank_spread: 0.02}");
  }
}

// The path of a file that `file` names relative to itself.
std::string beside(const std::string& file, const std::string& name) {
  return (std::filesystem::path(file).parent_path() / name).string();
}

// Reads a platform, which takes the place of nodes, NICs and fabric.
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
  cluster.ranks_per_node =
      map.has("ranks_per_node") ? read_count(map, "ranks_per_node", most_ranks) : 1;
  cluster.nodes = map.has("nodes") ? read_count(map, "nodes", most_ranks)
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

}  // namespace

Cluster read_cluster(const YAML::Node& node, const std::string& file, const std::string& name,
                     const FileReader& read) {
  std::vector<std::string> keys = {
      "description", "source",  "nodes",  "ranks_per_node", "hosts_per_node", "device",
      "intra",       "nic",     "fabric", "placement",      "host_link",      "storage",
      "decode",      "profile", "host",   "effects",        "power",          "price"};
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
    cluster.nodes = read_count(map, "nodes", most_ranks);
    cluster.ranks_per_node = read_count(map, "ranks_per_node", most_ranks);
  }
  if (static_cast<std::int64_t>(cluster.nodes) * cluster.ranks_per_node > most_ranks) {
    throw InputError(
        map.place_of_key("nodes"),
        fmt::format("{} nodes x {} ranks are too many", cluster.nodes, cluster.ranks_per_node),
        fmt::format("at most {} ranks", most_ranks));
  }
  if (map.has("hosts_per_node")) {
    cluster.hosts_per_node = read_count(map, "hosts_per_node", most_ranks);
    if (has_platform || map.has("host"))
      throw InputError(map.place_of_key("hosts_per_node"), "a node of several hosts",
                       "leave out host and fabric: {platform: ...}, which describe one host each");
    if (cluster.ranks_per_node % cluster.hosts_per_node != 0)
      throw InputError(
          map.place_of_key("hosts_per_node"),
          fmt::format("{} hosts share {} ranks", cluster.hosts_per_node, cluster.ranks_per_node),
          "each host of a node has as many: write a divisor of ranks_per_node");
  }
  const YAML::Node device = map.at("device");
  cluster.device =
      device.IsMap() ? read_device(device, file, "device")
                     : map.parsed("device", [](const std::string& n) { return catalog_device(n); });
  if (!has_platform) {
    read_intra(map, cluster);
    if (map.has("nic") || cluster.nodes > 1) read_nics(map, cluster);
    if (has_fabric_map) {
      cluster.fabric = read_fabric(map, basis, cluster);
    } else if (map.has("fabric")) {
      read_plain_fabric(map);
    }
  }
  if (map.has("host")) read_host(map, basis, cluster);
  read_cluster_effects(map, cluster);
  read_placement(map, cluster);
  if (map.has("host_link")) {
    cluster.host_link = cluster_link(map, "host_link");
    refuse_bandwidth_by_ranks(map, "host_link", *cluster.host_link);
  }
  override_figure(map, "storage", basis, bandwidth, cluster.storage);
  override_figure(map, "decode", basis, rate, cluster.decode_per_node);
  read_expenses(map, basis, cluster);
  cluster.profile = map.text_or("profile", "");
  return cluster;
}

Cluster parse_cluster_yaml(std::string_view text, const std::string& file, const FileReader& read) {
  return read_cluster(parse_yaml(text, file), file, "", read);
}

}  // namespace paceline::models
