// What nobody named of an all-reduce is as good as anything that a scan finds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/collective/catalogue.h"
#include "simulator/iteration/all_reduce_time.h"
#include "simulator/planner/fastest_all_reduce.h"

namespace paceline::simulator {
namespace {

struct Drawn {
  models::Cluster cluster;
  int ranks;
  Bytes bytes;
};

Drawn drawn(std::mt19937& random) {
  const std::vector<const char*> clusters = {"h200-ndr", "jizhi-p40"};
  const std::vector<int> ranks = {4, 12, 16, 24, 48, 64};
  Drawn job{models::catalog_cluster(clusters[random() % clusters.size()]),
            ranks[random() % ranks.size()],
            {}};
  const auto factor = [&] { return std::exp2(static_cast<double>(random() % 9) - 4); };
  for (auto* link : {&job.cluster.intra, &job.cluster.nic}) {
    const double latency = factor();
    const double bandwidth = factor();
    for (Seconds* end : {&link->latency.value, &link->latency.low, &link->latency.high})
      *end *= latency;
    for (BytesPerSecond* end :
         {&link->bandwidth.value, &link->bandwidth.low, &link->bandwidth.high})
      *end *= bandwidth;
  }
  job.bytes = Bytes{64 * std::floor(std::exp2(static_cast<double>(random() % 2500) / 100))};
  return job;
}

TEST(FastestAllReduce, IsBeatenByNoOptionsOfAScan) {
  std::mt19937 random(7);
  int moved = 0;  // where the catalogue's default k is worse
  for (int round = 0; round < 25; ++round) {
    const Drawn job = drawn(random);
    AllReduceTimer timer({.cluster = job.cluster, .ranks = job.ranks});
    for (const models::CollectiveAlgorithm& algorithm : models::all_reduce_catalogue()) {
      if (!algorithm.takes_group && !algorithm.takes_segments) continue;
      const AllReduceTime open = timer.by_name(algorithm.name, {}, job.bytes);
      SCOPED_TRACE(testing::Message() << open.all_reduce << " of " << job.bytes.value() << " B, "
                                      << job.ranks << " ranks of " << job.cluster.name);
      double worst_s = 0;
      for (const models::ScheduleOptions& options :
           candidate_options(algorithm, {.ranks = job.ranks}, job.cluster.ranks_per_node)) {
        double time_s = 0;
        try {
          time_s = timer.by_name(algorithm.name, options, job.bytes).time.value.value();
        } catch (const InputError&) {
          continue;  // The algorithm has no schedule for these options.
        }
        ASSERT_LE(open.time.value.value(), 1.001 * time_s)
            << models::described(algorithm.name, options);
        worst_s = std::max(worst_s, time_s);
      }
      if (worst_s > 1.01 * open.time.value.value()) ++moved;
    }
  }
  EXPECT_GT(moved, 60);
}

TEST(FastestAllReduce, KeepsWhatIsNamed) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  AllReduceTimer timer({.cluster = cluster, .ranks = 64});
  const auto all_reduce = [&](const char* name, models::ScheduleOptions options) {
    return timer.by_name(name, options, Bytes{1e6}).all_reduce;
  };
  EXPECT_EQ(all_reduce("hierarchical", {.group_size = 32}), "hierarchical k=32");
  EXPECT_EQ(all_reduce("double-binary-tree", {.segments = 3}), "double-binary-tree, 3 segments");
  EXPECT_EQ(all_reduce("ring", {.group_size = 32}), "ring");
}

// A pace is told by the all-reduce that the measured ranks and size would take.
TEST(FastestAllReduce, IsPacedByWhatOtherRanksMeasured) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  const Bytes bytes{1 << 26};
  AllReduceTimer plain({.cluster = cluster, .ranks = 24});
  const Seconds measured = 1.3 * plain.by_name("hierarchical", {}, bytes).time.value;
  AllReduceTimer same({.cluster = cluster, .ranks = 24, .measured = {{24, bytes, measured}}});
  EXPECT_NEAR(same.by_name("hierarchical", {}, bytes).time.value / measured, 1, 1e-5);
  AllReduceTimer larger({.cluster = cluster, .ranks = 64, .measured = {{24, bytes, measured}}});
  AllReduceTimer of_links({.cluster = cluster, .ranks = 64});
  EXPECT_GT(larger.by_name("hierarchical", {}, bytes).time.value,
            of_links.by_name("hierarchical", {}, bytes).time.value);
}

}  // namespace
}  // namespace paceline::simulator
