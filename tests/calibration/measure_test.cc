#include <gtest/gtest.h>

#include <set>

#include "calibration/cluster_profile.h"
#include "calibration/measure/kernel_rates.h"
#include "calibration/measure/layer_times.h"
#include "calibration/measure/message_times.h"
#include "models/network/work.h"
#include "models/network/zoo.h"
#include "tests/support/rank_threads.h"

namespace paceline::calibration {
namespace {

using models::CurveKind;
using runtime::Transport;
using testing::on_ranks;

// Two ranks on each node.
std::string host(const Transport& transport) {
  return "host" + std::to_string(transport.rank() / 2);
}

TEST(Measure, RanksOfANodeAreThoseThatSayTheSameOfIt) {
  on_ranks(5, 1, [](Transport& transport) {
    const NodeMap map = find_nodes(transport, host(transport));
    EXPECT_EQ(map.nodes(), 3);
    EXPECT_EQ(map.leaders(), (std::vector<int>{0, 2, 4}));
    EXPECT_EQ(map.ranks_of(1), (std::vector<int>{2, 3}));
  });
}

TEST(Measure, WhatIsMeasuredOfANicStaysUnderItsSwitch) {
  NodeMap map;
  map.node = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4};
  EXPECT_EQ(map.leaders_beside(2), (std::vector<int>{0, 2, 4, 6, 8}));
  EXPECT_EQ(map.leaders_beside(3), std::vector<int>());
  map.nodes_per_leaf = 2;
  EXPECT_EQ(map.leaders_beside(0), (std::vector<int>{0, 2}));
  EXPECT_EQ(map.leaders_beside(6), (std::vector<int>{4, 6}));
  EXPECT_EQ(map.leaders_beside(8), std::vector<int>());
  on_ranks(5, 1, [](Transport& transport) {
    NodeMap nodes = find_nodes(transport, std::to_string(transport.rank()));
    nodes.nodes_per_leaf = 2;
    const auto all =
        measure_messages(transport, nodes, {.sizes = {1, 1000}, .time = Seconds{0.01}});
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[1].ranks, 5);
    EXPECT_EQ(all[1].samples.empty(), transport.rank() != 0);
  });
}

TEST(Measure, EveryPatternIsTimedAtEverySizeOnRankZero) {
  on_ranks(6, 1, [](Transport& transport) {
    const NodeMap map = find_nodes(transport, host(transport));
    int calls = 0;
    const auto all = measure_messages(transport, map,
                                      {.sizes = {1, 1000, 100'000},
                                       .time = Seconds{0.05},
                                       .progress = [&](const std::string&, double share) {
                                         ++calls;
                                         EXPECT_LT(share, 1);
                                       }});
    ASSERT_EQ(all.size(), 4U);
    EXPECT_EQ(calls, transport.rank() == 0 ? 12 : 0);
    for (const MessageTimes& times : all) {
      EXPECT_EQ(times.ranks, times.kind == CurveKind::exchange && times.between_nodes ? 3 : 2);
      std::set<double> sizes;
      for (const Sample& sample : times.samples) {
        sizes.insert(sample.bytes.value());
        EXPECT_GT(sample.time, Seconds{0});
      }
      EXPECT_EQ(sizes.size(), transport.rank() == 0 ? 3U : 0U);
    }
    const auto gaps = measure_message_gap(transport, map, 3);
    EXPECT_EQ(gaps.size(), transport.rank() == 0 ? 3U : 0U);
    const auto streams = measure_streams(transport, map, 10'000, 3);
    ASSERT_EQ(streams.size(), 2U);
    EXPECT_EQ(streams[0].ranks, 3);
    EXPECT_EQ(streams[1].samples.size(), transport.rank() == 0 ? 3U : 0U);
    const double fairness = measure_fairness(transport, map, 10'000, 3);
    EXPECT_GE(fairness, 0);
    EXPECT_LE(fairness, 1);
    EXPECT_GT(measure_nic_sharing(transport, map, 10'000), 0);
  });
}

TEST(Measure, OneRankHasNobodyToMeasure) {
  on_ranks(1, 1, [](Transport& transport) {
    const NodeMap map = find_nodes(transport, "alone");
    EXPECT_TRUE(measure_messages(transport, map, {.sizes = {1}}).empty());
    EXPECT_TRUE(measure_message_gap(transport, map, 3).empty());
    EXPECT_EQ(measure_nic_sharing(transport, map, 10), 0);
  });
}

TEST(Measure, KernelRatesAreOfEveryKindAndTypeThatThereIs) {
  const auto rates = measure_kernel_rates(1 << 16, 5, "a test");
  ASSERT_EQ(rates.size(), 6U);
  for (const models::CalibratedRate& rate : rates) {
    EXPECT_GT(rate.bytes.low.value(), 0);
    EXPECT_LE(rate.bytes.low, rate.bytes.value);
    EXPECT_LE(rate.bytes.value, rate.bytes.high);
    EXPECT_EQ(rate.bytes.provenance, Provenance::measured);
  }
}

TEST(Measure, EveryLayerOfANetworkHasItsTimes) {
  const models::Network network = models::zoo_network("cnn-small");
  const models::NetworkWork work = models::work(network);
  for (const int ranks : {1, 3}) {
    on_ranks(ranks, 1, [&](Transport& transport) {
      const auto layers = measure_layers(
          transport, {.network = network, .batch = 4, .iterations = 3, .time = Seconds{0}},
          "a test");
      if (transport.rank() != 0) {
        EXPECT_TRUE(layers.empty());
        return;
      }
      ASSERT_EQ(layers.size(), work.layers.size());
      for (std::size_t i = 0; i < layers.size(); ++i) {
        EXPECT_EQ(layers[i].layer, work.layers[i].name);
        EXPECT_EQ(layers[i].batch_per_rank, 4);
        EXPECT_EQ(layers[i].forward_beside_traffic.has_value(), ranks > 1);
        EXPECT_EQ(layers[i].backward_beside_traffic.has_value(), ranks > 1);
        if (work.layers[i].forward_flops == 0) continue;
        EXPECT_GT(layers[i].forward.value, Seconds{0}) << layers[i].layer;
        EXPECT_GT(layers[i].backward.value, Seconds{0}) << layers[i].layer;
        if (ranks == 1) continue;
        EXPECT_GT(layers[i].forward_beside_traffic->value, Seconds{0}) << layers[i].layer;
        EXPECT_GT(layers[i].backward_beside_traffic->value, Seconds{0}) << layers[i].layer;
      }
    });
  }
}

ClusterMeasurements exact(double alpha_s, double beta_s) {
  MessageTimes exchange{CurveKind::exchange, true, 8, {}};
  for (double bytes = 4; bytes < 2e6; bytes *= 4) {
    for (int i = 0; i < 5; ++i)
      exchange.samples.push_back({Bytes{bytes}, Seconds{alpha_s + bytes * beta_s}});
  }
  return {
      .transport = "open-mpi",
      .segmentation = {1000, 2000},
      .messages = {exchange},
      .streams = {{true, 8, {SecondsPerByte{4e-8}, SecondsPerByte{5e-8}, SecondsPerByte{4e-8}}}},
      .message_gaps = {Seconds{3e-6}, Seconds{1e-6}, Seconds{2e-6}},
      .fairness = 0.25,
      .rates = {},
      .layers = {}};
}

TEST(ClusterProfile, TheNicIsThatOfTheExchange) {
  const ClusterProfile made = make_profile(exact(1e-3, 4e-8), {"lab", "lab8", "v100", "a test"});
  EXPECT_TRUE(made.complaints.empty());
  EXPECT_NEAR(made.profile.nic_latency->value.value(), 1e-3, 1e-8);
  EXPECT_NEAR(made.profile.nic_bandwidth->value.value(), 2.5e7, 2.5e2);
  EXPECT_FALSE(made.profile.intra_latency);
  EXPECT_EQ(made.profile.transport->message_gap.value, Seconds{2e-6});
  EXPECT_EQ(made.profile.transport->fairness, 0.25);
  EXPECT_EQ(made.profile.curves.at(0).ranks, 8);
  EXPECT_EQ(made.fits.size(), 1U);
  // And it is a profile that others read.
  EXPECT_EQ(to_json(models::parse_profile(to_json(made.profile), "p.json")), to_json(made.profile));
}

TEST(ClusterProfile, ABadFitIsSaid) {
  ClusterMeasurements measured = exact(1e-3, 4e-8);
  measured.messages[0].samples.resize(10);
  const ClusterProfile made = make_profile(measured, {"lab", "lab8", "v100", "a test"});
  ASSERT_FALSE(made.complaints.empty());
  EXPECT_EQ(made.complaints[0].find("exchange between nodes, 8 ranks: "), 0U);
}

}  // namespace
}  // namespace paceline::calibration
