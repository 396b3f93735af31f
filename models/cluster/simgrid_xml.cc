// Tests: tests/models/simgrid_xml_test.cc, tests/simulator/platform_test.cc.
#include "models/cluster/simgrid_xml.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <limits>
#include <pugixml.hpp>
#include <unordered_map>
#include <unordered_set>

#include "models/base/limits.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/place_in.h"
#include "models/base/to_size.h"

namespace paceline::models {
namespace {

constexpr std::size_t largest_text = std::size_t{256} << 20;
constexpr std::size_t most_hosts = 2048;
constexpr std::size_t most_route_links = std::size_t{32} << 20;
constexpr std::size_t longest_name = 200;

struct Unit {
  std::string_view name;
  double scale;
};

constexpr double kibi = 1024;
constexpr Unit bandwidth_units[] = {
    {"Bps", 1},
    {"kBps", 1e3},
    {"MBps", 1e6},
    {"GBps", 1e9},
    {"TBps", 1e12},
    {"KiBps", kibi},
    {"MiBps", kibi* kibi},
    {"GiBps", kibi* kibi* kibi},
    {"TiBps", kibi* kibi* kibi* kibi},
    {"bps", 1e0 / 8},
    {"kbps", 1e3 / 8},
    {"Mbps", 1e6 / 8},
    {"Gbps", 1e9 / 8},
    {"Tbps", 1e12 / 8},
    {"Kibps", kibi / 8},
    {"Mibps", kibi* kibi / 8},
    {"Gibps", kibi* kibi* kibi / 8},
    {"Tibps", kibi* kibi* kibi* kibi / 8},
};
constexpr Unit time_units[] = {{"s", 1},  {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12},
                               {"m", 60}, {"h", 3600},  {"d", 86400}, {"w", 604800}};

enum class Sharing { shared, fatpipe, split_duplex };

// The numbers that the two directions of a link of the file have in the platform. They are equal if
// the link has no directions.
struct LinkNumbers {
  int up = 0;
  int down = 0;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Platform read() {
    if (text_.size() > largest_text)
      throw InputError({file_}, "the file is larger than 256 MiB", "give a smaller platform");
    if (const std::size_t nul = text_.find('\0'); nul != std::string_view::npos)
      throw InputError(place_at(nul), "this is not XML: a zero byte", "");
    pugi::xml_document document;
    const pugi::xml_parse_result parsed =
        document.load_buffer(text_.data(), text_.size(), pugi::parse_default, pugi::encoding_utf8);
    if (!parsed) {
      std::string why = parsed.description();
      why.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(why.front())));
      throw InputError(place_at(to_size(parsed.offset)), "this is not XML: " + why, "");
    }
    read_zone(find_zone(document));
    return std::move(platform_);
  }

 private:
  using Node = pugi::xml_node;

  [[nodiscard]] InputPlace place_at(std::size_t offset) const {
    return place_in(file_, text_, offset);
  }
  // The place of an element: pugixml points behind its '<'.
  [[nodiscard]] InputPlace place(const Node& node) const {
    const std::ptrdiff_t offset = node.offset_debug();
    return offset < 0 ? InputPlace{file_}
                      : place_at(to_size(std::max<std::ptrdiff_t>(offset, 1) - 1));
  }
  [[noreturn]] void fail(const Node& node, const std::string& problem,
                         const std::string& remedy) const {
    throw InputError(place(node), problem, remedy);
  }

  void check_attributes(const Node& node, const std::vector<std::string>& known) const {
    std::vector<std::string_view> seen;
    for (const pugi::xml_attribute& attribute : node.attributes()) {
      if (std::find(known.begin(), known.end(), attribute.name()) == known.end()) {
        const InputError error =
            unknown_name(fmt::format("attribute of <{}>", node.name()), attribute.name(), known);
        throw InputError(place(node), error.problem(), error.remedy());
      }
      if (std::find(seen.begin(), seen.end(), attribute.name()) != seen.end())
        fail(node, fmt::format("attribute {} stands twice", attribute.name()), "keep one of them");
      seen.emplace_back(attribute.name());
    }
  }
  [[nodiscard]] std::string required(const Node& node, const char* attribute) const {
    const pugi::xml_attribute found = node.attribute(attribute);
    if (!found)
      fail(node, fmt::format("<{}> has no {}", node.name(), attribute),
           fmt::format("add {}=\"...\"", attribute));
    return found.value();
  }
  [[nodiscard]] std::string name_of(const Node& node, const char* attribute) const {
    std::string name = required(node, attribute);
    check_name(node, name);
    return name;
  }
  void check_name(const Node& node, const std::string& name) const {
    const bool is_plain = std::all_of(name.begin(), name.end(),
                                      [](char c) { return static_cast<unsigned char>(c) >= 0x20; });
    if (name.empty() || name.size() > longest_name || !is_plain)
      fail(node, fmt::format("{} is no name", in_quotes(name)),
           fmt::format("choose 1 to {} printable characters", longest_name));
  }
  // Files of traces change speeds while time goes by.
  void refuse_traces(const Node& node, std::initializer_list<const char*> attributes) const {
    for (const char* attribute : attributes) {
      if (node.attribute(attribute) && node.attribute(attribute).value()[0] != '\0')
        fail(node, fmt::format("{} makes <{}> change with time", attribute, node.name()),
             "leave it out: platforms are constant here");
    }
  }
  // Older files state that a host or link is switched on, and which share of it is available. Only ON and 1
  // are read, because platforms are constant here.
  void expect_available(const Node& node) const {
    const pugi::xml_attribute state = node.attribute("state");
    const pugi::xml_attribute share = node.attribute("availability");
    if ((state && state.value() != std::string_view("ON")) || (share && share.as_double() != 1))
      fail(node, fmt::format("a <{}> that is not all there", node.name()),
           "leave it out: platforms are constant here");
  }
  void expect_props_only(const Node& node) const {
    for (const Node& child : node.children()) {
      if (child.name() != std::string_view("prop")) refuse(child, node.name());
    }
  }
  [[noreturn]] void refuse(const Node& node, std::string_view inside) const {
    if (node.type() != pugi::node_element)
      fail(node, fmt::format("text in <{}>", inside), "remove it");
    fail(node, fmt::format("<{}> in <{}> is not supported", node.name(), inside),
         "write one zone of routing Full with <host>, <link> and <route>, or one flat <cluster>");
  }

  template <std::size_t N>
  [[nodiscard]] double quantity(const Node& node, const char* attribute, const Unit (&units)[N],
                                const char* examples) const {
    const std::string text = required(node, attribute);
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit(end, to_size(text.data() + text.size() - end));
    if (status == std::errc{} && unit.empty() && value == 0) return 0;
    const auto found =
        std::find_if(std::begin(units), std::end(units),
                     [&unit](const Unit& candidate) { return candidate.name == unit; });
    if (status != std::errc{} || found == std::end(units))
      fail(node, fmt::format("{}: {} is no number with a unit", attribute, in_quotes(text)),
           examples);
    return value * found->scale;
  }
  [[nodiscard]] BytesPerSecond bandwidth(const Node& node, const char* attribute) const {
    const BytesPerSecond value{quantity(node, attribute, bandwidth_units,
                                        "write Bps, kBps, ..., TBps, KiBps, ..., "
                                        "TiBps, or bps, ..., Tbps, as in 12.5GBps")};
    check_range(node, attribute, value);
    return value;
  }
  [[nodiscard]] Seconds latency(const Node& node, const char* attribute) const {
    if (!node.attribute(attribute)) return Seconds{0};
    const Seconds value{quantity(node, attribute, time_units,
                                 "write s, ms, us, ns, ps, m, h, d or w, as in 1.5us")};
    check_range(node, attribute, value);
    return value;
  }
  template <class Q>
  void check_range(const Node& node, const char* attribute, Q value) const {
    if (!within_limits(value))
      fail(node,
           fmt::format("{}: {} is out of range", attribute,
                       in_quotes(node.attribute(attribute).value())),
           fmt::format("write {} to {}", to_text(Limits<Q>::least), to_text(Limits<Q>::most)));
  }
  [[nodiscard]] Sharing sharing(const Node& node, const char* attribute, Sharing otherwise) const {
    const pugi::xml_attribute found = node.attribute(attribute);
    if (!found) return otherwise;
    const std::string_view text = found.value();
    if (text == "SHARED") return Sharing::shared;
    if (text == "FATPIPE") return Sharing::fatpipe;
    if (text == "SPLITDUPLEX" || text == "FULLDUPLEX") return Sharing::split_duplex;
    const InputError error = unknown_name(attribute, text, {"SHARED", "FATPIPE", "SPLITDUPLEX"});
    throw InputError(place(node), error.problem(), error.remedy());
  }

  // The zone or cluster with the hosts, through zones that hold nothing else.
  [[nodiscard]] Node find_zone(const pugi::xml_document& document) const {
    const Node root = document.document_element();
    if (root.name() != std::string_view("platform"))
      fail(root, fmt::format("the root is <{}>", root.name()), "write <platform version=\"4.1\">");
    if (root.next_sibling()) fail(root.next_sibling(), "something behind <platform>", "remove it");
    check_attributes(root, {"version"});
    const std::string version = required(root, "version");
    if (version != "4" && version != "4.0" && version != "4.1") {
      fail(root, fmt::format("version {} of the format", in_quotes(version)),
           "write 4.1; simgrid_update_xml converts older files");
    }
    Node at = root;
    while (true) {
      const Node child = only_child(at);
      if (child.name() == std::string_view("cluster")) return child;
      if (child.name() != std::string_view("zone") && child.name() != std::string_view("AS"))
        refuse(child, at.name());
      bool holds_a_zone = false;
      for (const Node& part : child.children()) {
        const std::string_view name = part.name();
        holds_a_zone = holds_a_zone || name == "zone" || name == "AS" || name == "cluster";
      }
      if (!holds_a_zone) return child;
      check_attributes(child, {"id", "routing"});
      at = child;
    }
  }
  [[nodiscard]] Node only_child(const Node& node) const {
    Node found;
    for (const Node& child : node.children()) {
      if (child.name() == std::string_view("prop")) continue;
      if (child.name() == std::string_view("config")) {
        check_settings(child);
        continue;
      }
      if (found)
        fail(child, fmt::format("more than one part in <{}>", node.name()),
             "nested zones are not supported: write one zone of routing Full");
      found = child;
    }
    if (!found)
      fail(node, fmt::format("<{}> is empty", node.name()), "add a <zone> or a <cluster>");
    return found;
  }

  // Settings of SimGrid have no effect here. Those of its network models are refused, because they change
  // what links carry.
  void check_settings(const Node& config) const {
    expect_props_only(config);
    for (const Node& prop : config.children()) {
      const std::string name = required(prop, "id");
      if (name.starts_with("network/"))
        fail(prop, fmt::format("the setting {} changes what links carry", in_quotes(name)),
             "remove it, and write the bandwidths and latencies that messages get");
    }
  }

  void read_zone(const Node& zone) {
    platform_.name = name_of(zone, "id");
    if (zone.name() == std::string_view("cluster")) {
      read_cluster(zone);
      return;
    }
    check_attributes(zone, {"id", "routing"});
    const std::string routing = required(zone, "routing");
    if (routing != "Full")
      fail(zone, fmt::format("routing {} is not supported", in_quotes(routing)),
           "write routing=\"Full\" with a <route> between every two hosts");
    std::vector<Node> routes;
    for (const Node& child : zone.children()) {
      const std::string_view name = child.name();
      if (name == "host") {
        read_host(child);
      } else if (name == "link") {
        read_link(child);
      } else if (name == "route") {
        routes.push_back(child);
      } else if (name != "prop") {
        refuse(child, zone.name());
      }
    }
    if (platform_.hosts.empty()) fail(zone, "the zone has no hosts", "add <host> elements");
    read_routes(zone, routes);
  }

  void add_host(const Node& node, std::string name) {
    check_name(node, name);
    if (platform_.hosts.size() == most_hosts)
      fail(node, fmt::format("more than {} hosts", most_hosts), "give a smaller platform");
    if (!host_numbers_.try_emplace(name, platform_.hosts.size()).second)
      fail(node, fmt::format("host {} stands twice", in_quotes(name)), "rename one of them");
    platform_.hosts.push_back(std::move(name));
  }
  void read_host(const Node& node) {
    check_attributes(node, {"id", "speed", "core", "speed_file", "availability_file", "state_file",
                            "coordinates", "pstate", "availability", "state"});
    expect_available(node);
    (void)required(node, "speed");
    refuse_traces(node, {"speed_file", "availability_file", "state_file"});
    expect_props_only(node);
    add_host(node, name_of(node, "id"));
  }

  LinkNumbers add_link(const Node& node, const PlatformLink& link, Sharing sharing) {
    const auto add = [&](const char* direction) {
      platform_.links.push_back(link);
      std::string& name = platform_.links.back().name;
      name += direction;
      platform_.links.back().is_shared = sharing != Sharing::fatpipe;
      check_name(node, name);
      if (!link_names_.insert(name).second)
        fail(node, fmt::format("link {} stands twice", in_quotes(name)), "rename one of them");
      return static_cast<int>(platform_.links.size()) - 1;
    };
    if (sharing == Sharing::split_duplex) {
      const int up = add("_UP");
      return {up, add("_DOWN")};
    }
    const int both = add("");
    return {both, both};
  }
  void read_link(const Node& node) {
    check_attributes(node, {"id", "bandwidth", "latency", "sharing_policy", "bandwidth_file",
                            "latency_file", "state_file", "state"});
    expect_available(node);
    refuse_traces(node, {"bandwidth_file", "latency_file", "state_file"});
    expect_props_only(node);
    const std::string name = name_of(node, "id");
    const LinkNumbers numbers =
        add_link(node, {name, bandwidth(node, "bandwidth"), latency(node, "latency")},
                 sharing(node, "sharing_policy", Sharing::shared));
    if (!link_numbers_.try_emplace(name, numbers).second)
      fail(node, fmt::format("link {} stands twice", in_quotes(name)), "rename one of them");
  }

  // A link on a route: its number on the way there, and its number on the way back.
  struct Passed {
    int there;
    int back;
  };
  [[nodiscard]] Passed read_passed(const Node& node) const {
    check_attributes(node, {"id", "direction"});
    if (node.first_child()) refuse(node.first_child(), node.name());
    const std::string name = required(node, "id");
    const auto found = link_numbers_.find(name);
    if (found == link_numbers_.end())
      fail(node, fmt::format("no link {} stands in the zone", in_quotes(name)),
           "name a <link> of this zone");
    const LinkNumbers link = found->second;
    const pugi::xml_attribute attribute = node.attribute("direction");
    const std::string_view direction = attribute ? attribute.value() : "NONE";
    if (direction != "UP" && direction != "DOWN" && direction != "NONE") {
      const InputError error = unknown_name("direction", direction, {"UP", "DOWN", "NONE"});
      throw InputError(place(node), error.problem(), error.remedy());
    }
    const bool is_split = link.up != link.down;
    if (is_split && direction == "NONE")
      fail(node, fmt::format("link {} is SPLITDUPLEX and no direction says which", in_quotes(name)),
           "add direction=\"UP\" or \"DOWN\"");
    if (!is_split && direction != "NONE")
      fail(node, fmt::format("link {} has no directions", in_quotes(name)),
           "leave out the direction, or make the link SPLITDUPLEX");
    return direction == "DOWN" ? Passed{link.down, link.up} : Passed{link.up, link.down};
  }
  [[nodiscard]] std::size_t host_number(const Node& node, const char* attribute) const {
    const std::string name = required(node, attribute);
    const auto found = host_numbers_.find(name);
    if (found == host_numbers_.end())
      fail(node, fmt::format("no host {} stands in the zone", in_quotes(name)),
           "name a <host> of this zone");
    return found->second;
  }

  void read_routes(const Node& zone, const std::vector<Node>& nodes) {
    const std::size_t hosts = platform_.hosts.size();
    // Where in `links` the route from a to b begins, at a * hosts + b; it ends with -1.
    constexpr std::size_t none = ~std::size_t{0};
    std::vector<std::size_t> begin(hosts * hosts, none);
    std::vector<int> links;
    std::vector<Passed> passed;
    for (const Node& node : nodes) {
      check_attributes(node, {"src", "dst", "symmetrical"});
      const std::size_t from = host_number(node, "src");
      const std::size_t to = host_number(node, "dst");
      const pugi::xml_attribute attribute = node.attribute("symmetrical");
      const std::string_view symmetrical = attribute ? attribute.value() : "YES";
      const bool both = symmetrical == "YES" || symmetrical == "yes";
      if (!both && symmetrical != "NO" && symmetrical != "no")
        fail(node, fmt::format("symmetrical: {} is neither", in_quotes(symmetrical)),
             "write YES or NO");
      passed.clear();
      for (const Node& child : node.children()) {
        if (child.name() != std::string_view("link_ctn")) refuse(child, node.name());
        const Passed link = read_passed(child);
        const auto is_same = [&link](const Passed& p) { return p.there == link.there; };
        if (std::any_of(passed.begin(), passed.end(), is_same))
          fail(child, "the route passes a link twice", "keep one of them");
        passed.push_back(link);
      }
      if (passed.empty())
        fail(node, "the route has no links", "add <link_ctn id=\"...\"/> elements");
      if (from == to) continue;  // no rank sends to itself
      const auto add = [&](std::size_t a, std::size_t b, auto each) {
        if (begin[a * hosts + b] != none)
          fail(node,
               fmt::format("a second route from {} to {}", in_quotes(platform_.hosts[a]),
                           in_quotes(platform_.hosts[b])),
               "routes are symmetrical unless they say NO; keep one of them");
        if (links.size() + passed.size() > most_route_links)
          fail(node, fmt::format("the routes have more than {} links", most_route_links),
               "give a smaller platform");
        begin[a * hosts + b] = links.size();
        each();
        links.push_back(-1);
      };
      add(from, to, [&] {
        for (const Passed& link : passed) links.push_back(link.there);
      });
      if (both)
        add(to, from, [&] {
          for (auto link = passed.rbegin(); link != passed.rend(); ++link)
            links.push_back(link->back);
        });
    }
    platform_.first_of_route.reserve(hosts * hosts + 1);
    for (std::size_t a = 0; a < hosts; ++a) {
      for (std::size_t b = 0; b < hosts; ++b) {
        platform_.first_of_route.push_back(platform_.route_links.size());
        if (a == b) continue;
        std::size_t at = begin[a * hosts + b];
        if (at == none)
          fail(zone,
               fmt::format("no route from {} to {}", in_quotes(platform_.hosts[a]),
                           in_quotes(platform_.hosts[b])),
               "add a <route> between every two hosts");
        for (; links[at] >= 0; ++at) platform_.route_links.push_back(links[at]);
      }
    }
    platform_.first_of_route.push_back(platform_.route_links.size());
  }

  // Each host has a link of its own, perhaps in two directions; a backbone joins them.
  void read_cluster(const Node& node) {
    check_attributes(
        node, {"id", "prefix", "suffix", "radical", "speed", "core", "bw", "lat", "sharing_policy",
               "topology", "topo_parameters", "bb_bw", "bb_lat", "bb_sharing_policy", "router_id",
               "limiter_link", "loopback_bw", "loopback_lat"});
    expect_props_only(node);
    const pugi::xml_attribute topology = node.attribute("topology");
    if (topology && topology.value() != std::string_view("FLAT"))
      fail(node, fmt::format("topology {} is not supported", in_quotes(topology.value())),
           "write FLAT, or describe it as a fabric of a cluster file (docs/formats.md)");
    if (node.attribute("limiter_link") && node.attribute("limiter_link").value()[0] != '\0')
      fail(node, "limiter_link is not supported", "leave it out");
    (void)required(node, "speed");
    const std::string prefix = required(node, "prefix");
    const std::string suffix = required(node, "suffix");
    const BytesPerSecond bw = bandwidth(node, "bw");
    (void)required(node, "lat");
    const Seconds lat = latency(node, "lat");
    const Sharing policy = sharing(node, "sharing_policy", Sharing::split_duplex);
    std::vector<LinkNumbers> host_links;
    for (const std::int64_t number : radical(node)) {
      add_host(node, fmt::format("{}{}{}", prefix, number, suffix));
      host_links.push_back(
          add_link(node, {fmt::format("{}_link_{}", platform_.name, number), bw, lat}, policy));
    }
    int backbone = -1;
    const bool has_backbone = node.attribute("bb_bw") && node.attribute("bb_bw").value()[0] != '\0';
    if (!has_backbone && node.attribute("bb_lat"))
      fail(node, "a backbone with a latency and no bandwidth", "add bb_bw=\"...\"");
    if (has_backbone) {
      const Sharing bb_policy = sharing(node, "bb_sharing_policy", Sharing::shared);
      if (bb_policy == Sharing::split_duplex)
        fail(node, "bb_sharing_policy: a backbone has no directions", "write SHARED or FATPIPE");
      const PlatformLink link{platform_.name + "_backbone", bandwidth(node, "bb_bw"),
                              latency(node, "bb_lat")};
      backbone = add_link(node, link, bb_policy).up;
    }
    const std::size_t hosts = platform_.hosts.size();
    for (std::size_t a = 0; a < hosts; ++a) {
      for (std::size_t b = 0; b < hosts; ++b) {
        platform_.first_of_route.push_back(platform_.route_links.size());
        if (a == b) continue;
        platform_.route_links.push_back(host_links[a].up);
        if (backbone >= 0) platform_.route_links.push_back(backbone);
        platform_.route_links.push_back(host_links[b].down);
      }
    }
    platform_.first_of_route.push_back(platform_.route_links.size());
  }

  // "0-3,7" is 0, 1, 2, 3, 7.
  [[nodiscard]] std::vector<std::int64_t> radical(const Node& node) const {
    const std::string text = required(node, "radical");
    std::vector<std::int64_t> numbers;
    std::string_view rest = text;
    const auto bad = [&](const std::string& problem) {
      fail(node, fmt::format("radical {}: {}", in_quotes(text), problem),
           "write numbers and ranges, as in 0-15,20");
    };
    const auto number = [&](std::string_view part) {
      std::int64_t value = -1;
      try {
        value = parse_count(part, 0, std::numeric_limits<std::int32_t>::max());
      } catch (const InputError& error) {
        bad(error.problem());
      }
      return value;
    };
    while (true) {
      const std::size_t comma = rest.find(',');
      const std::string_view group = rest.substr(0, comma);
      const std::size_t dash = group.find('-');
      const std::int64_t first = number(group.substr(0, dash));
      const std::int64_t last =
          dash == std::string_view::npos ? first : number(group.substr(dash + 1));
      if (last < first) bad("a range that ends before it begins");
      if (to_size(last - first) + numbers.size() >= most_hosts)
        bad(fmt::format("more than {} hosts", most_hosts));
      for (std::int64_t n = first; n <= last; ++n) numbers.push_back(n);
      if (comma == std::string_view::npos) return numbers;
      rest.remove_prefix(comma + 1);
    }
  }

  std::string_view text_;
  std::string file_;
  Platform platform_;
  std::unordered_map<std::string, std::size_t> host_numbers_;
  std::unordered_map<std::string, LinkNumbers> link_numbers_;  // of the file
  std::unordered_set<std::string> link_names_;                 // of the platform
};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace

Platform parse_simgrid_xml(std::string_view text, const std::string& file) {
  return Reader(text, file).read();
}

std::string simgrid_xml(const Platform& platform) {
  std::string xml = fmt::format(
      "<?xml version='1.0'?>\n"
      "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<!-- Times are right under network/model:CM02, network/crosstraffic:0 and "
      "network/TCP-gamma:1e30. -->\n"
      "<platform version=\"4.1\">\n"
      "  <zone id=\"{}\" routing=\"Full\">\n",
      escaped(platform.name));
  const auto out = std::back_inserter(xml);
  for (const std::string& host : platform.hosts)
    fmt::format_to(out, "    <host id=\"{}\" speed=\"1Gf\"/>\n", escaped(host));
  std::vector<std::string> ids;
  for (const PlatformLink& link : platform.links) {
    ids.push_back(escaped(link.name));
    fmt::format_to(out,
                   "    <link id=\"{}\" bandwidth=\"{}Bps\" latency=\"{}s\" "
                   "sharing_policy=\"{}\"/>\n",
                   ids.back(), link.bandwidth.value(), link.latency.value(),
                   link.is_shared ? "SHARED" : "FATPIPE");
  }
  const auto hosts = static_cast<int>(platform.hosts.size());
  for (int from = 0; from < hosts; ++from) {
    for (int to = 0; to < hosts; ++to) {
      if (from == to) continue;
      fmt::format_to(out, "    <route src=\"{}\" dst=\"{}\" symmetrical=\"NO\">",
                     escaped(platform.hosts[to_size(from)]), escaped(platform.hosts[to_size(to)]));
      for (const int link : platform.route(from, to))
        fmt::format_to(out, "<link_ctn id=\"{}\"/>", ids[to_size(link)]);
      xml += "</route>\n";
    }
  }
  xml += "  </zone>\n</platform>\n";
  return xml;
}

}  // namespace paceline::models
