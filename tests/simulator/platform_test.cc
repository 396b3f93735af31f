// A cluster written as a SimGrid platform and read again is the same cluster.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "models/cluster/catalog.h"
#include "models/cluster/simgrid_xml.h"
#include "simulator/engine/platform_of.h"
#include "simulator/engine/step_engine.h"
#include "tests/support/error_of.h"
#include "tests/support/generators.h"
#include "tests/support/golden.h"

namespace paceline::simulator {
namespace {

bool is_close(double a, double b) {
  return std::fabs(a - b) <= 1e-12 * std::fabs(b);
}

RC_GTEST_PROP(PlatformXml, RoundTripKeepsRoutesBandwidthsAndAlphas, ()) {
  const int ranks = test::drawn(1, 24);
  const CommunicationCost cost = *test::communication_costs(ranks);
  const Routes routes(cost, ranks);
  const std::string xml = models::simgrid_xml(platform_of(routes, "lab"));
  CommunicationCost read;
  read.gamma = cost.gamma;
  read.platform =
      std::make_shared<const models::Platform>(models::parse_simgrid_xml(xml, "lab.xml"));
  RC_ASSERT(models::simgrid_xml(*read.platform) == xml);
  const Routes again(read, ranks);
  std::vector<int> path;
  std::vector<int> read_path;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from == to) continue;
      const double alpha_s = routes.path(from, to, path);
      RC_ASSERT(is_close(again.path(from, to, read_path), alpha_s));
      if (read_path.size() == path.size() + 1) read_path.pop_back();  // the latency
      RC_ASSERT(read_path.size() == path.size());
      for (std::size_t i = 0; i < path.size(); ++i) {
        RC_ASSERT(again.link_name(read_path[i]) == routes.link_name(path[i]));
        RC_ASSERT(is_close(again.beta_s(read_path[i]), routes.beta_s(path[i])));
      }
    }
  }
  const models::Schedule schedule = test::drawn_all_reduce(ranks, 1);
  const Bytes bytes{test::drawn_up_to(1e8)};
  const double time = StepEngine(schedule, cost).time(bytes).value();
  RC_ASSERT(std::fabs(StepEngine(schedule, read).time(bytes).value() - time) <= 1e-11 * time);
}

// Bandwidths are kept as seconds for a byte, and alphas are sums: what rounding adds is not written.
TEST(PlatformXml, NumbersAreAsTheCatalogueHasThem) {
  CommunicationCost cost;
  cost.ranks_per_node = 2;
  cost.intra = {Seconds{1e-6} + Seconds{2.4e-6}, 1 / BytesPerSecond{135.5e9}};
  cost.nic = {Seconds{12.5e-6}, 1 / BytesPerSecond{1e9}};
  const std::string xml = models::simgrid_xml(platform_of(Routes(cost, 4), "lab"));
  EXPECT_NE(xml.find("bandwidth=\"1000000000Bps\" latency=\"0s\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("bandwidth=\"135500000000Bps\" latency=\"0s\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("latency=\"3.4e-06s\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("latency=\"1.25e-05s\""), std::string::npos) << xml;
}

TEST(PlatformXml, EqualsTheGoldenFile) {
  models::Cluster cluster = models::catalog_cluster("sony-abci");
  cluster.nodes = 4;
  cluster.fabric = {
      .kind = models::FabricKind::fat_tree, .levels = {{2, 3.0}}, .hop_latency = Seconds{1e-7}};
  const Routes routes(communication_cost(cluster, nullptr, Bound::stated), 10);
  test::expect_golden("platform_fat_tree.xml", models::simgrid_xml(platform_of(routes, "abci")));
}

TEST(PlatformXml, RefusesMoreThan512Ranks) {
  CommunicationCost cost;
  cost.intra.beta = SecondsPerByte{1e-9};
  EXPECT_EQ(test::error_of([&] { return platform_of(Routes(cost, 513), "x"); }),
            "513 ranks are 262656 routes; choose at most 512 ranks");
}

}  // namespace
}  // namespace paceline::simulator
