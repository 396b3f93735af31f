// Tests: tests/models/cluster_expenses_test.cc.
#include "models/cluster/expenses_reader.h"

#include <string>

#include "models/cluster/catalog_file.h"
#include "models/cluster/catalog_parts.h"

namespace paceline::models {
namespace {

constexpr auto power_share = [](const std::string& s) { return parse_share(s, 1e-3, 1.5); };
constexpr auto over_devices = [](const std::string& s) { return parse_share(s, 0, 10); };
constexpr auto effectiveness = [](const std::string& s) { return parse_number(s, 1, 10); };

// The figure of one entry of the catalogue, which stands under `section` there.
template <class F>
auto catalog_figure(const char* section, std::string_view name, const char* kind, F parse) {
  const CatalogFile file("expenses.yaml", section);
  YAML::Node entry = file.entry(name, kind);
  entry.remove("description");
  const std::string key(name);
  YAML::Node mapping;
  mapping[key] = entry;
  return read_figure(YamlMap(mapping, file.file(), section, {key}), key, {}, parse, Zero::allowed);
}

Power catalog_power() {
  return {.training_share = catalog_figure("power", "training_share", "power", power_share),
          .host_share = catalog_figure("power", "host_share", "power", over_devices),
          .pue = catalog_figure("power", "pue", "power", effectiveness),
          .node = std::nullopt};
}

void read_power(const YamlMap& map, const Basis& basis, Power& read) {
  const YamlMap keys(map.at("power"), map.file(), "power",
                     {"training_share", "host_share", "pue", "node"});
  for (const char* share : {"training_share", "host_share"}) {
    if (keys.has("node") && keys.has(share))
      throw InputError(keys.place_of_key(share), std::string(share) + " beside the power of a node",
                       "leave one of the two out: node has it in it");
  }
  override_figure(keys, "training_share", basis, power_share, read.training_share);
  override_figure(keys, "host_share", basis, over_devices, read.host_share, Zero::allowed);
  override_figure(keys, "pue", basis, effectiveness, read.pue);
  override_figure(keys, "node", basis, power, read.node);
}

bool names_an_offer(const YAML::Node& node) {
  return node.IsScalar() && !node.Scalar().empty() && node.Scalar().front() >= 'a' &&
         node.Scalar().front() <= 'z';
}

}  // namespace

Figure<UsdPerHour> catalog_price(std::string_view name) {
  return catalog_figure("prices", name, "price", price);
}

std::vector<CatalogEntry> catalog_prices() {
  return CatalogFile("expenses.yaml", "prices").entries();
}

CatalogFailures catalog_failures() {
  const auto time = [](const char* name, auto parse) {
    const Figure<double> read = catalog_figure("failures", name, "failures", parse);
    return Figure<Seconds>{Seconds{read.value}, Seconds{read.low}, Seconds{read.high},
                           read.provenance, read.source};
  };
  constexpr double hour = 3600;
  return {time("between", [](const std::string& s) { return hour * parse_number(s, 1, 1e9); }),
          time("recovery", [](const std::string& s) { return parse_duration(s).value(); })};
}

void read_expenses(const YamlMap& map, const Basis& basis, Cluster& cluster) {
  cluster.power = catalog_power();
  if (map.has("power")) read_power(map, basis, cluster.power);
  if (!map.has("price")) return;
  cluster.price =
      names_an_offer(map.at("price"))
          ? map.parsed("price", [](const std::string& name) { return catalog_price(name); })
          : read_figure(map, "price", basis, price, Zero::allowed);
}

}  // namespace paceline::models
