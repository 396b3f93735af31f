// What a cluster says of power and price, and the catalogue's figures of them.
#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/cluster/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace paceline::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string lab =
    "cluster: lab\nnodes: 2\nranks_per_node: 4\ndevice: v100\nintra: nvlink2\nnic: roce-25g\n";

std::string refusal(const std::string& more) {
  try {
    (void)parse_cluster_yaml(lab + more, "lab.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CatalogExpenses, EveryDeviceHasARatedPowerWithASource) {
  for (const CatalogEntry& entry : catalog_devices()) {
    const Device device = catalog_device(entry.name);
    ASSERT_TRUE(device.power) << entry.name;
    EXPECT_GE(device.power->value, Watts{50}) << entry.name;
    EXPECT_LE(device.power->high, Watts{1500}) << entry.name;
    const std::string& source = device.power->source;
    const bool is_looked_up = device.power->provenance == Provenance::published;
    EXPECT_EQ(source.find("from memory") == std::string::npos, is_looked_up) << entry.name;
    EXPECT_FALSE(source.empty()) << entry.name;
  }
}

TEST(CatalogExpenses, EveryPriceIsPublishedWithASource) {
  ASSERT_FALSE(catalog_prices().empty());
  for (const CatalogEntry& entry : catalog_prices()) {
    const Figure<UsdPerHour> price = catalog_price(entry.name);
    EXPECT_EQ(price.provenance, Provenance::published) << entry.name;
    EXPECT_GT(price.value, UsdPerHour{0}) << entry.name;
    EXPECT_THAT(price.source, HasSubstr("202")) << entry.name << " has no date";
  }
}

TEST(CatalogExpenses, SharesOfPowerHaveIntervalsAndAClusterWithoutAPriceHasNone) {
  const Cluster cluster = parse_cluster_yaml(lab, "lab.yaml");
  EXPECT_FALSE(cluster.price);
  EXPECT_FALSE(cluster.power.node);
  for (const Figure<double>* figure :
       {&cluster.power.training_share, &cluster.power.host_share, &cluster.power.pue}) {
    EXPECT_LT(figure->low, figure->value);
    EXPECT_LT(figure->value, figure->high);
    EXPECT_FALSE(figure->source.empty());
  }
}

TEST(ClusterExpenses, AreAsItsFileSays) {
  const Cluster cluster = parse_cluster_yaml(
      lab +
          "price: {value: 3 USD/h, low: 2 USD/h, high: 5 USD/h, provenance: assumed, source: us}\n"
          "power: {training_share: 0.9, host_share: 0, pue: {value: 1.1, high: 1.2}}\n",
      "lab.yaml");
  EXPECT_EQ(cluster.price->value, UsdPerHour{3});
  EXPECT_EQ(cluster.price->high, UsdPerHour{5});
  EXPECT_EQ(cluster.price->provenance, Provenance::assumed);
  EXPECT_EQ(cluster.power.training_share.value, 0.9);
  EXPECT_EQ(cluster.power.host_share.value, 0);
  EXPECT_EQ(cluster.power.pue.high, 1.2);
  EXPECT_EQ(parse_cluster_yaml(lab + "power: {node: 1.5 kW}\n", "f").power.node->value,
            Watts{1500});
  EXPECT_EQ(parse_cluster_yaml(lab + "price: aws-p3-16xlarge\n", "f").price->value,
            UsdPerHour{24.48});
}

TEST(ClusterExpenses, AreRefusedByLineAndRemedy) {
  for (const char* bad : {"24.48", "-1 USD/h", "nan USD/h", "3 EUR/h", "1e30 USD/h", "aws-p9", "''",
                          "[3 USD/h]", "{low: 3 USD/h}"})
    EXPECT_THAT(refusal(std::string("price: ") + bad + "\n"), HasSubstr("lab.yaml:7")) << bad;
  EXPECT_THAT(refusal("price: 24.48\n"), HasSubstr("USD/h"));
  for (const char* bad : {"3 kW", "{nodes: 3 kW}", "{node: 3}", "{node: 0 W}", "{node: -3 W}",
                          "{pue: 0.9}", "{training_share: 0}", "{training_share: 2}",
                          "{host_share: -1}", "{node: 3 kW, host_share: 0.2}"})
    EXPECT_THAT(refusal(std::string("power: ") + bad + "\n"), HasSubstr("lab.yaml:7")) << bad;
  EXPECT_THAT(refusal("power: {node: 3 kW, training_share: 0.2}\n"),
              HasSubstr("leave one of the two out"));
}

}  // namespace
}  // namespace paceline::models
