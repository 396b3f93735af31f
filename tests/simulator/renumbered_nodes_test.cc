// What nodes are called, and places in nodes that are joined alike, changes no prediction.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "simulator/prediction/prediction.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

std::vector<int> shuffled(int count, std::mt19937& random) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

struct Job {
  models::NetworkWork network;
  models::Cluster cluster;
  int ranks = 1;
  int streams = 1;
  EngineKind engine = EngineKind::automatic;

  [[nodiscard]] Predictor predictor() const {
    PredictionRequest request{{.batch_per_rank = 1, .precision = models::Precision::fp32},
                              network,
                              cluster,
                              nullptr,
                              ranks};
    request.batch_per_rank = 16;
    request.thresholds.streams = streams;
    request.engine = engine;
    request.time_budget = TimeBudget::bounded;
    return Predictor(request);
  }
};

// The iteration times of all strategies; of those that are left out, 0.
std::vector<double> times(const Job& job) {
  Predictor predictor = job.predictor();
  std::vector<double> all;
  for (const auto catalogue : {models::strategy_catalogue(), models::other_system_catalogue()}) {
    for (const models::Strategy& strategy : catalogue) {
      try {
        all.push_back(predictor.iteration(strategy).value());
      } catch (const InputError&) {
        all.push_back(0);
      }
    }
  }
  return all;
}

void expect_same(const Job& job, const Job& renumbered) {
  const std::vector<double> before = times(job);
  const std::vector<double> after = times(renumbered);
  std::size_t i = 0;
  for (const auto catalogue : {models::strategy_catalogue(), models::other_system_catalogue()}) {
    for (const models::Strategy& strategy : catalogue) {
      EXPECT_NEAR(after[i], before[i], 1e-9 * before[i])
          << strategy.name << " on " << job.cluster.name << ", " << job.ranks;
      ++i;
    }
  }
}

// Nodes in any order; where a node is a switch with one NIC or striped ones, places likewise.
TEST(RenumberedNodes, ChangeNoTimeOfAnyStrategy) {
  std::mt19937 random(11);
  const models::NetworkWork network = test::chain_network({40'000, 3'000'000, 700, 120'000});
  for (const char* name : {"jizhi-p40", "h200-ndr", "aws-p3-16xlarge", "goyal-p100"}) {
    for (const int nodes : {2, 3, 8}) {
      Job job{network, models::catalog_cluster(name)};
      const int g = job.cluster.ranks_per_node;
      job.ranks = g * nodes - static_cast<int>(random() % 2);
      job.streams = random() % 3 == 0 ? 2 : 1;
      Job renumbered = job;
      const std::vector<int> order = shuffled(std::min(nodes + 3, job.cluster.nodes), random);
      for (int node = 0; node < nodes; ++node)
        for (int place = 0; place < g; ++place)
          renumbered.cluster.slots.push_back(order[static_cast<std::size_t>(node)] * g + place);
      expect_same(job, renumbered);
    }
  }
}

// The same where ranks sit anywhere, and one node is slow.
TEST(RenumberedNodes, ChangeNoTimeWhereRanksSitAnywhere) {
  std::mt19937 random(12);
  const models::NetworkWork network = test::chain_network({40'000, 3'000'000});
  for (int round = 0; round < 6; ++round) {
    Job job{network, models::catalog_cluster(round % 2 == 0 ? "jizhi-p40" : "h200-ndr")};
    const int g = job.cluster.ranks_per_node;
    const int nodes = 4;
    job.ranks = 16;
    job.cluster.slots = shuffled(nodes * g, random);
    if (round % 3 == 0) job.cluster.slow_nodes = {{1, 0.5}};
    Job renumbered = job;
    const std::vector<int> order = shuffled(nodes, random);
    const std::vector<int> places = shuffled(g, random);
    const bool all_alike = job.cluster.nic_use == models::NicUse::striped && !job.cluster.host &&
                           job.cluster.intra_kind != models::IntraKind::ring;
    for (int& slot : renumbered.cluster.slots) {
      const int place = slot % g;
      slot = order[static_cast<std::size_t>(slot / g)] * g +
             (all_alike ? places[static_cast<std::size_t>(place)] : place);
    }
    renumbered.cluster.slow_nodes.clear();
    for (const auto& [node, share] : job.cluster.slow_nodes)
      renumbered.cluster.slow_nodes.emplace(order[static_cast<std::size_t>(node)], share);
    expect_same(job, renumbered);
  }
}

// Tensors of every size, so that goyal takes both of its all-reduces, on nodes in another order.
TEST(RenumberedNodes, GoyalTakesTheSameGroups) {
  Job job{models::work(models::zoo_network("resnet50")), models::catalog_cluster("jizhi-p40"), 256};
  Job renumbered = job;
  for (int rank = 0; rank < job.ranks; ++rank)
    renumbered.cluster.slots.push_back((31 - rank / 8) * 8 + rank % 8);
  const models::Strategy& goyal = models::strategy("goyal");
  EXPECT_EQ(renumbered.predictor().iteration(goyal), job.predictor().iteration(goyal));
}

}  // namespace
}  // namespace paceline::simulator
