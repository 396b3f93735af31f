#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/cluster/catalog.h"
#include "models/collective/algorithms.h"
#include "simulator/cost/closed_form.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/step_engine.h"
#include "tests/support/generators.h"

namespace paceline::simulator {
namespace {

// 1 s a message, 0.5 s a byte sent, 0.25 s a byte reduced.
constexpr AlphaBetaGamma link{Seconds{1}, SecondsPerByte{0.5}, SecondsPerByte{0.25}};

double ring_time(int ranks) {
  return closed_form_time(link, models::ring_form(ranks), Bytes{8}).value();
}
double halving_doubling_time(int ranks) {
  return closed_form_time(link, models::halving_doubling_form(ranks), Bytes{8}).value();
}
double hierarchical_time(int ranks, int group_size) {
  return closed_form_time(link, models::hierarchical_form(ranks, group_size), Bytes{8}).value();
}

// Four ranks, 8 bytes. Ring: 6 messages of 2 bytes, 3 of which are reduced: 6 + 6 + 1.5.
// Halving-doubling: 4 + 2 bytes there and back, 6 reduced: 4 + 6 + 1.5.
TEST(ClosedForm, FourRanksByHand) {
  EXPECT_DOUBLE_EQ(ring_time(4), 13.5);
  EXPECT_DOUBLE_EQ(halving_doubling_time(4), 11.5);
  // Pairs: 2 steps of 4 bytes (+ 1 to reduce), the two masters' ring, 2 steps back: 8 + 6 + 6.
  EXPECT_DOUBLE_EQ(hierarchical_time(4, 2), 2 * 4 + 2 * 3 + 1 + 2 * 3);
}

// Six ranks fold to four: 1 + 4 + 2 before, 1 + 4 after.
TEST(ClosedForm, HalvingDoublingOfSixRanksFolds) {
  EXPECT_DOUBLE_EQ(halving_doubling_time(6), 7 + 11.5 + 5);
}

TEST(ClosedForm, OneRankTakesNoTime) {
  EXPECT_EQ(ring_time(1), 0);
  EXPECT_EQ(halving_doubling_time(1), 0);
  EXPECT_EQ(hierarchical_time(1, 1), 0);
}

TEST(ClosedForm, GroupsOfOneAreARing) {
  for (int p = 1; p <= 20; ++p) EXPECT_DOUBLE_EQ(hierarchical_time(p, 1), ring_time(p));
}

TEST(CommunicationCost, ReadsFiguresAtEitherEnd) {
  const models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  const CommunicationCost fast = communication_cost(cluster, nullptr, Bound::fast);
  const CommunicationCost slow = communication_cost(cluster, nullptr, Bound::slow);
  EXPECT_EQ(fast.nic.alpha, cluster.nic.latency.low);
  EXPECT_EQ(slow.nic.alpha, cluster.nic.latency.high);
  EXPECT_DOUBLE_EQ(fast.nic.beta.value(), 1 / cluster.nic.bandwidth.high.value());
  EXPECT_EQ(slow.gamma.value(), 0) << "a GPU reduces while it receives";
  models::Profile profile;
  profile.nic_latency = Figure<Seconds>::exact(Seconds{7e-6}, Provenance::calibrated, "test");
  EXPECT_EQ(communication_cost(cluster, &profile, Bound::stated).nic.alpha.value(), 7e-6);
  EXPECT_EQ(communication_cost(cluster, &profile, Bound::stated).intra.alpha,
            cluster.intra.latency.value);
}

TEST(CommunicationCost, KeepsTheShapeOfTheCluster) {
  models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  cluster.ranks_per_node = 6;
  cluster.nics_per_node = 3;
  cluster.nic_use = models::NicUse::affinity;
  const CommunicationCost cost = communication_cost(cluster, nullptr, Bound::stated);
  EXPECT_EQ(cost.ranks_per_node, 6);
  EXPECT_EQ(cost.nics_per_node, 3);
  EXPECT_EQ(cost.nic_use, models::NicUse::affinity);
}

// 100 GB/s of which half is reached: 3 bytes moved for each reduced take 60 ps.
TEST(CommunicationCost, ReducingMovesThreeBytes) {
  models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  cluster.device.memory_bandwidth =
      Figure<BytesPerSecond>::exact(BytesPerSecond{100e9}, Provenance::datasheet, "test");
  cluster.device.memory_efficiency = Figure<double>::exact(0.5, Provenance::datasheet, "test");
  cluster.device.reduction = models::Reduction::after_receiving;
  EXPECT_DOUBLE_EQ(communication_cost(cluster, nullptr, Bound::stated).gamma.value(), 60e-12);
  // One that reduces while it receives takes no time of its own, unless something else reduces.
  cluster.device.reduction = models::Reduction::while_receiving;
  EXPECT_EQ(communication_cost(cluster, nullptr, Bound::stated).gamma.value(), 0);
  models::Profile profile;
  EXPECT_EQ(communication_cost(cluster, &profile, Bound::stated).gamma.value(), 0);
  profile.transport.emplace();
  EXPECT_DOUBLE_EQ(communication_cost(cluster, &profile, Bound::stated).gamma.value(), 60e-12);
  profile.transport.reset();
  profile.rates.push_back({.kind = models::RateKind::reduce,
                           .bytes = Figure<BytesPerSecond>::exact(BytesPerSecond{4e9},
                                                                  Provenance::calibrated, "test")});
  EXPECT_DOUBLE_EQ(communication_cost(cluster, &profile, Bound::stated).gamma.value(), 1 / 4e9);
}

// A bus bandwidth has the reduction in it, so a ring must reach it as messages grow, and never more.
RC_GTEST_PROP(CommunicationCost, ARingOnOneNodeReachesTheBusBandwidth, ()) {
  const char* links[] = {"nvlink1", "nvlink2", "nvlink3", "nvlink4", "nvlink5"};
  const char* gpus[] = {"p100", "v100", "a100", "h200", "b200"};
  const auto generation = static_cast<std::size_t>(test::drawn(0, 4));
  models::Cluster cluster;
  cluster.device = models::catalog_device(gpus[generation]);
  cluster.intra = models::catalog_link(links[generation]);
  cluster.ranks_per_node = test::drawn(2, 16);
  const int p = test::drawn(2, cluster.ranks_per_node);
  const StepEngine engine(models::ring_all_reduce(p),
                          communication_cost(cluster, nullptr, Bound::stated, p));
  const double bandwidth = cluster.intra.bandwidth.value.value();
  double before = 0;
  for (double bytes = 1 << 20; bytes <= 1e12; bytes *= 16) {
    const double seconds = engine.time(Bytes{bytes}).value();
    const double bus = bytes / seconds * 2 * (p - 1) / p;
    RC_ASSERT(bus >= before);
    RC_ASSERT(bus <= bandwidth * (1 + 1e-12));
    before = bus;
  }
  RC_ASSERT(before > 0.999 * bandwidth);
}

// The ranks of a job that sit on one node say how much a mesh gives each of them.
TEST(CommunicationCost, AMeshIsAsFastAsTheRanksInUseMakeIt) {
  const models::Cluster cluster = models::catalog_cluster("goyal-p100");
  const auto rate = [&](int ranks) {
    return 1 / communication_cost(cluster, nullptr, Bound::stated, ranks).intra.beta.value();
  };
  EXPECT_NEAR(rate(2), 18e9, 1);
  EXPECT_NEAR(rate(4), 36e9, 1);
  EXPECT_NEAR(rate(8), 66e9, 1);
  EXPECT_NEAR(rate(64), 66e9, 1);
  EXPECT_NEAR(rate(0), 66e9, 1);
}

// RTX 2080 Ti that cannot reach each other: lanes of 11.1 GB/s, two sockets, host memory of 60 GB/s.
models::Cluster staged_box(int ranks_per_node) {
  const auto rate = [](double bytes_per_s) {
    return Figure<BytesPerSecond>::exact(BytesPerSecond{bytes_per_s}, Provenance::datasheet,
                                         "test");
  };
  models::Cluster cluster;
  cluster.device = models::catalog_device("rtx-2080-ti");
  cluster.intra = models::catalog_link("pcie3-x16");
  cluster.ranks_per_node = ranks_per_node;
  cluster.host = models::Host{.peer_to_peer = false,
                              .sockets = 2,
                              .crossing = rate(9e9),
                              .memory_bandwidth = rate(60e9),
                              .switches = 2,
                              .uplink = rate(12e9),
                              .lane = {}};
  return cluster;
}
double large_ring_rate(const models::Cluster& cluster, int p) {
  const double bytes = 1e12;
  const StepEngine engine(models::ring_all_reduce(p),
                          communication_cost(cluster, nullptr, Bound::stated, p));
  return bytes * 2 * (p - 1) / p / engine.time(Bytes{bytes}).value();
}

// Each bound in turn: the lane, the memory, the uplinks of the switches, the way between sockets.
TEST(CommunicationCost, ARingThroughTheHostIsAsFastAsItsNarrowestPart) {
  models::Cluster cluster = staged_box(8);
  cluster.host->uplink.reset();
  EXPECT_NEAR(large_ring_rate(cluster, 2), 60e9 / 8, 1e6) << "memory carries two ranks";
  EXPECT_NEAR(large_ring_rate(cluster, 4), 60e9 / 16, 1e6);
  EXPECT_NEAR(large_ring_rate(cluster, 8), 60e9 / 32, 1e6);
  cluster.host->memory_bandwidth.reset();
  EXPECT_NEAR(large_ring_rate(cluster, 8), 11.1e9 / 1.4, 1e6) << "a lane carries both ways";
  cluster.host->crossing->value = BytesPerSecond{6e9};
  EXPECT_NEAR(large_ring_rate(cluster, 4), 11.1e9 / 1.4, 1e6) << "four ranks fill one socket";
  EXPECT_NEAR(large_ring_rate(cluster, 8), 6e9, 1e6) << "one message crosses each way";
  cluster.host->uplink =
      Figure<BytesPerSecond>::exact(BytesPerSecond{12e9}, Provenance::datasheet, "test");
  EXPECT_NEAR(large_ring_rate(cluster, 8), 12e9 / 4, 1e6) << "four ranks behind a switch";
  cluster.host->peer_to_peer = true;
  EXPECT_NEAR(large_ring_rate(cluster, 8), 6e9, 1e6) << "only one message leaves a switch";
  models::Profile profile;
  profile.intra_bandwidth =
      Figure<BytesPerSecond>::exact(BytesPerSecond{5e9}, Provenance::calibrated, "test");
  EXPECT_FALSE(communication_cost(cluster, &profile, Bound::stated).host);
}

TEST(CommunicationCost, AClusterWithoutNicsHasNoEndlessRates) {
  models::Cluster cluster = models::catalog_cluster("h200-ndr");
  cluster.nodes = 1;
  cluster.nic = {};
  const CommunicationCost cost = communication_cost(cluster, nullptr, Bound::stated, 8);
  EXPECT_EQ(cost.nic.beta, cost.intra.beta);
}

// Each figure of a profile takes the place of one of the cluster's, and of no other.
TEST(CommunicationCost, AProfileReplacesWhatItHas) {
  const models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  const auto seconds = [](double s) {
    return Figure<Seconds>::exact(Seconds{s}, Provenance::calibrated, "test");
  };
  const auto rate = [](double bytes_per_s) {
    return Figure<BytesPerSecond>::exact(BytesPerSecond{bytes_per_s}, Provenance::calibrated,
                                         "test");
  };
  models::Profile profile;
  profile.intra_latency = seconds(3e-6);
  profile.intra_bandwidth = rate(4e9);
  profile.nic_latency = seconds(5e-6);
  profile.nic_bandwidth = rate(8e9);
  for (const Bound bound : {Bound::stated, Bound::fast, Bound::slow}) {
    const CommunicationCost cost = communication_cost(cluster, &profile, bound);
    EXPECT_DOUBLE_EQ(cost.intra.alpha.value(), 3e-6);
    EXPECT_DOUBLE_EQ(cost.intra.beta.value(), 1 / 4e9);
    EXPECT_DOUBLE_EQ(cost.nic.alpha.value(), 5e-6);
    EXPECT_DOUBLE_EQ(cost.nic.beta.value(), 1 / 8e9);
  }
}

TEST(CommunicationCost, AMeasuredUplinkTakesThePlaceOfTheStatedOne) {
  models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  cluster.fabric = {.kind = models::FabricKind::fat_tree, .levels = {{4, 2}, {3, 1.5}}};
  models::Profile profile;
  EXPECT_EQ(communication_cost(cluster, &profile, Bound::slow).fabric, cluster.fabric);
  profile.uplink_oversubscription = {3, 2.5, 4, Provenance::calibrated, "test"};
  const auto leaf = [&](Bound bound) {
    const models::Fabric fabric = communication_cost(cluster, &profile, bound).fabric;
    EXPECT_EQ(fabric.levels.at(0).members, 4);
    EXPECT_EQ(fabric.levels.at(1), cluster.fabric.levels[1]);
    return fabric.levels[0].oversubscription;
  };
  EXPECT_EQ(leaf(Bound::stated), 3);
  EXPECT_EQ(leaf(Bound::fast), 2.5);
  EXPECT_EQ(leaf(Bound::slow), 4);
  cluster.fabric = {};
  EXPECT_EQ(communication_cost(cluster, &profile, Bound::stated).fabric, cluster.fabric);
}

// What an exchange of no bytes took has the header in it.
TEST(CommunicationCost, TheHeaderOfAMessageIsOfTheLinkAndNotOfAlpha) {
  const auto figure = [](auto value) {
    return Figure<decltype(value)>::exact(value, Provenance::measured, "run");
  };
  models::Profile profile;
  profile.nic_bandwidth = figure(BytesPerSecond{1e7});
  profile.transport.emplace();
  profile.transport->message_header = figure(Bytes{100});
  profile.curves = {{.kind = models::CurveKind::exchange,
                     .ranks = 4,
                     .pieces = {{Bytes{0}, figure(Seconds{1e-3}), figure(SecondsPerByte{1e-7})}},
                     .source = "run"}};
  const models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  const CommunicationCost cost = communication_cost(cluster, &profile, Bound::stated, 4);
  EXPECT_EQ(cost.transport->message_header, Bytes{100});
  EXPECT_NEAR(cost.nic_alpha(Bytes{0}).value(), 1e-3 - 100 * 1e-7, 1e-12);
  EXPECT_NEAR(cost.nic_alpha(Bytes{1000}).value(), 1e-3 - 100 * 1e-7, 1e-12);
  // Other engines know no headers.
  EXPECT_EQ(cost.nic.alpha, Seconds{1e-3});
}

}  // namespace
}  // namespace paceline::simulator
