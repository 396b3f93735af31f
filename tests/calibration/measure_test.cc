#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "calibration/measure/kernel_rates.h"
#include "calibration/measure/layer_times.h"
#include "calibration/measure/link_figures.h"
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

TEST(Measure, AnUplinkIsMeasuredBetweenNodesInTheSamePlaceOfTwoLeaves) {
  NodeMap map;
  map.node = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4};
  EXPECT_EQ(map.leaders_across(0), std::vector<int>());
  map.nodes_per_leaf = 2;
  EXPECT_EQ(map.leaders_across(0), (std::vector<int>{0, 4}));
  EXPECT_EQ(map.leaders_across(4), (std::vector<int>{0, 4}));
  EXPECT_EQ(map.leaders_across(2), (std::vector<int>{2, 6}));
  EXPECT_EQ(map.leaders_across(1), std::vector<int>());
  EXPECT_EQ(map.leaders_across(8), std::vector<int>());
  for (const int nodes_per_leaf : {1, 3, 5}) {
    map.nodes_per_leaf = nodes_per_leaf;
    EXPECT_EQ(map.leaders_across(0), std::vector<int>()) << nodes_per_leaf;
  }
  on_ranks(5, 1, [](Transport& transport) {
    NodeMap nodes = find_nodes(transport, std::to_string(transport.rank()));
    EXPECT_TRUE(measure_uplink(transport, nodes, 1000, 7, Seconds{60}).empty());
    nodes.nodes_per_leaf = 2;
    const auto samples_in = [&](double time) {
      return measure_uplink(transport, nodes, 1000, 7, Seconds{time}).size();
    };
    EXPECT_EQ(samples_in(60), transport.rank() == 0 ? 7U : 0U);
    EXPECT_EQ(samples_in(0), transport.rank() == 0 ? 3U : 0U);
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
    const MessageGaps gaps = measure_message_gap(transport, map, 256, 3);
    EXPECT_EQ(gaps.bytes, 256);
    EXPECT_EQ(gaps.samples.size(), transport.rank() == 0 ? 3U : 0U);
    const auto streams = measure_streams(transport, map, 10'000, 3);
    ASSERT_EQ(streams.size(), 2U);
    EXPECT_EQ(streams[0].ranks, 3);
    EXPECT_EQ(streams[1].samples.size(), transport.rank() == 0 ? 3U : 0U);
    const auto both_ways = measure_both_ways(transport, map, 10'000, 3);
    ASSERT_EQ(both_ways.size(), 2U);
    EXPECT_TRUE(both_ways[0].between_nodes);
    EXPECT_FALSE(both_ways[1].between_nodes);
    EXPECT_EQ(both_ways[1].samples.size(), transport.rank() == 0 ? 3U : 0U);
    for (const double ratio : both_ways[1].samples) EXPECT_GT(ratio, 0);
    const double fairness = measure_fairness(transport, map, 10'000, 3);
    EXPECT_GE(fairness, 0);
    EXPECT_LE(fairness, 1);
    EXPECT_GT(measure_nic_sharing(transport, map, 10'000), 0);
  });
}

// Another transport, with an all-reduce that takes a microsecond for each byte and adds nothing.
class WithAllReduce : public Transport {
 public:
  explicit WithAllReduce(Transport& below) : below_(below), traits_(below.traits()) {
    traits_.name = "sleeper";
  }
  [[nodiscard]] const runtime::TransportTraits& traits() const override { return traits_; }
  [[nodiscard]] Request post_send(int s, int to, std::span<const std::byte> message) override {
    return below_.post_send(s, to, message);
  }
  [[nodiscard]] Request post_receive(int s, int from, std::span<std::byte> room) override {
    return below_.post_receive(s, from, room);
  }
  [[nodiscard]] bool test(Request request) override { return below_.test(request); }
  void wait_any(std::span<const Request> requests) override { below_.wait_any(requests); }
  void abort() noexcept override { below_.abort(); }
  [[nodiscard]] bool has_all_reduce() const override { return true; }
  void all_reduce(std::span<float> bucket, int /*ranks*/) override {
    std::this_thread::sleep_for(std::chrono::microseconds(bucket.size_bytes()));
  }

 private:
  Transport& below_;
  runtime::TransportTraits traits_;
};

// Sizes of the all-reduce's samples, each with how many there are.
std::map<double, int> all_reduce_sizes_in(Seconds time) {
  std::map<double, int> sizes;
  on_ranks(2, 1, [&](Transport& below) {
    WithAllReduce transport(below);
    const NodeMap map = find_nodes(transport, "one");
    const auto all = measure_messages(
        transport, map,
        {.sizes = {4, 100}, .time = time, .all_reduce_sizes = {4, 100, 1000, 2000, 100'000'000}});
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0].kind, CurveKind::point_to_point);
    EXPECT_EQ(all[2].kind, CurveKind::all_reduce);
    if (transport.rank() != 0) return;
    for (const Sample& sample : all[0].samples) EXPECT_LE(sample.bytes, Bytes{100});
    for (const Sample& sample : all[2].samples) ++sizes[sample.bytes.value()];
  });
  return sizes;
}

TEST(Measure, TheLibrarysAllReduceIsMeasuredAsFarAsTheTimeAllows) {
  // The last would take 100 s, the others take less than one.
  const auto sizes = all_reduce_sizes_in(Seconds{20});
  ASSERT_EQ(sizes.size(), 4U);
  for (const auto& [size, samples] : sizes) EXPECT_GE(samples, 3) << size;
  EXPECT_EQ(sizes.rbegin()->first, 2000);
}

TEST(Measure, SmallAllReducesAreMeasuredHoweverShortTheTime) {
  const auto sizes = all_reduce_sizes_in(Seconds{1e-6});
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(sizes.at(4), 3);
  EXPECT_EQ(sizes.at(100), 3);
}

// One that takes 1 ms and 3 ms in turns, and knows who called.
class TakesTurns final : public WithAllReduce {
 public:
  using WithAllReduce::WithAllReduce;
  void all_reduce(std::span<float> /*bucket*/, int first) override {
    ++calls[first];
    std::this_thread::sleep_for(std::chrono::milliseconds(calls[first] % 2 == 0 ? 1 : 3));
  }
  std::map<int, int> calls;  // by the ranks that take part
};

TEST(Measure, TheLibrarysAllReduceIsTimedInARowOverThePowersOfTwoAndAllRanks) {
  on_ranks(6, 1, [](Transport& below) {
    TakesTurns transport(below);
    const NodeMap map = find_nodes(transport, host(transport));
    const auto all = measure_messages(transport, map, {.sizes = {4}, .time = Seconds{0.1}});
    std::vector<int> ranks;
    for (const MessageTimes& times : all) {
      if (times.kind != CurveKind::all_reduce) continue;
      ranks.push_back(times.ranks);
      EXPECT_EQ(times.between_nodes, times.ranks > 2);
      EXPECT_EQ(transport.calls[times.ranks] > 0, transport.rank() < times.ranks);
      EXPECT_EQ(times.samples.size() >= 3, transport.rank() == 0);
      for (const Sample& sample : times.samples) EXPECT_GE(sample.time, Seconds{2e-3});
    }
    EXPECT_EQ(ranks, (std::vector{2, 4, 6}));
  });
}

TEST(Measure, OneRankHasNobodyToMeasure) {
  on_ranks(1, 1, [](Transport& transport) {
    const NodeMap map = find_nodes(transport, "alone");
    EXPECT_TRUE(measure_messages(transport, map, {.sizes = {1}}).empty());
    EXPECT_TRUE(measure_message_gap(transport, map, 1, 3).samples.empty());
    EXPECT_TRUE(measure_both_ways(transport, map, 10, 3).empty());
    EXPECT_TRUE(measure_uplink(transport, map, 10, 3, Seconds{1}).empty());
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

}  // namespace
}  // namespace paceline::calibration
