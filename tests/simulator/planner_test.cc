#include <gtest/gtest.h>

#include "models/collective/catalogue.h"
#include "models/network/zoo.h"
#include "simulator/planner/bucket_timer.h"
#include "simulator/planner/recurrence.h"
#include "simulator/planner/thresholds.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

using namespace paceline::literals;
using models::WireType;

CommunicationCost slow_network() {
  return {.ranks_per_node = 1,
          .intra = {5_us, SecondsPerByte{1e-10}},
          .nic = {10_us, SecondsPerByte{1e-10}},
          .nics_per_node = 1,
          .nic_use = models::NicUse::striped,
          .gamma = SecondsPerByte{1e-12}};
}

struct ResNet {
  models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  ComputeTimes compute;
  ResNet() {
    for (std::size_t i = 0; i < network.layers.size(); ++i) compute.layers.push_back({1_ms, 2_ms});
    compute.update = 2_ms;
  }
};

TEST(PriorityOrder, TakesTheReadyBucketOfTheFirstLayer) {
  // Bucket 0 is alone at first; 1 and 2 are ready when it is through, and 2 is more urgent.
  const std::vector<Seconds> ready = {0_s, 1_s, 2_s};
  const std::vector<Seconds> durations = {3_s, 3_s, 3_s};
  const std::vector<int> priorities = {2, 1, 0};
  EXPECT_EQ(priority_order(ready, durations, priorities), (std::vector<int>{0, 2, 1}));
}

// The thresholds of a job whose buckets take nothing but their all-reduce, of step-engine times.
models::Thresholds resolved(std::string_view strategy, const ThresholdRequest& asked,
                            const ResNet& job, int ranks, WireType wire, CollectiveTimer& timer) {
  return resolve_thresholds(models::strategy(strategy), asked,
                            planning_job(job.network, ranks, wire, job.compute), {timer})
      .thresholds;
}

TEST(Thresholds, AskedForAreKept) {
  const ResNet job;
  CollectiveTimer timer(slow_network());
  const ThresholdRequest asked{.fusion = 3_MiB, .hybrid = 5_MiB, .group_size = 4};
  const models::Thresholds chosen = resolved("hybrid", asked, job, 64, WireType::fp16, timer);
  EXPECT_EQ(chosen, (models::Thresholds{.fusion = 3_MiB, .hybrid = 5_MiB, .group_size = 4}));
}

TEST(Thresholds, EtaIsWhereRingOvertakesHierarchical) {
  const ResNet job;
  CollectiveTimer timer(slow_network());
  const models::Thresholds chosen = resolved("hybrid", {}, job, 64, WireType::fp32, timer);
  const auto time = [&](const char* name, Bytes size) {
    const auto& entry = models::all_reduce_algorithm(name);
    const auto options =
        models::taken_options(entry, {.ranks = 64, .group_size = chosen.group_size});
    return timer.time({name, options, entry.build(options)}, size);
  };
  ASSERT_GT(chosen.hybrid, 1_KiB);
  EXPECT_LE(time("hierarchical", 0.99 * chosen.hybrid), time("ring", 0.99 * chosen.hybrid));
  EXPECT_GT(time("hierarchical", 1.01 * chosen.hybrid), time("ring", 1.01 * chosen.hybrid));
}

// ncclTreeThreshold of NCCL 2.4 by hand: 10,000 bytes a microsecond that trees take less over PCIe, and
// 15,000 for each of 11 channels over NVLink of 125 GB/s.
TEST(Thresholds, EtaOfNccl24IsItsTreeThreshold) {
  const ResNet job;
  const auto eta = [&](int ranks, int in_node, bool by_nvlink) {
    CommunicationCost cost = slow_network();
    cost.ranks_per_node = in_node;
    cost.by_nvlink = by_nvlink;
    cost.intra.beta = SecondsPerByte{by_nvlink ? 1 / 125e9 : 1 / 11e9};
    CollectiveTimer timer(cost);
    return resolved("nccl-2.4", {}, job, ranks, WireType::fp32, timer).hybrid.value();
  };
  EXPECT_EQ(eta(4, 4, false), 0);
  EXPECT_NEAR(eta(8, 4, false), 10e3 * (42 - 15 - 12), 1e-6);
  EXPECT_NEAR(eta(16, 4, false), 10e3 * (90 - 30 - 12), 1e-6);
  EXPECT_EQ(eta(2, 1, false), 0);  // 6 us around the ring, 15 up the tree
  EXPECT_GT(eta(16, 8, true), 1e100);
  EXPECT_NEAR(eta(32, 8, true), 15e3 * 11 * (186 - 30 - 28), 1e-3);
}

// No power of two is better than the theta that is chosen by more than 0.1%.
TEST(Thresholds, ThetaIsAsGoodAsTheBestOfItsGrid) {
  const ResNet job;
  CollectiveTimer timer(slow_network());
  const models::Strategy& strategy = models::strategy("fused-ring");
  const auto finish = [&](Bytes theta) {
    const models::Plan plan =
        models::make_plan(strategy, job.network.gradients, 256, WireType::fp32,
                          {.fusion = theta, .hybrid = Bytes{0}, .group_size = 1});
    std::vector<Seconds> durations;
    for (const auto& bucket : plan.buckets)
      durations.push_back(timer.time(plan.schedules[static_cast<std::size_t>(bucket.schedule)],
                                     plan.bytes(bucket)));
    return last_finish(ready_times(job.network, plan, job.compute), durations);
  };
  const Bytes chosen = resolved("fused-ring", {}, job, 256, WireType::fp32, timer).fusion;
  for (double theta = 65536; theta <= 268435456; theta *= 2)
    EXPECT_LE(finish(chosen).value(), 1.001 * finish(Bytes{theta}).value());
}

TEST(Thresholds, StrategiesThatDoNotFuseByDefaultFuseOnlyWhenAsked) {
  const ResNet job;
  CollectiveTimer timer(slow_network());
  for (const char* name : {"halving-doubling", "hierarchical"}) {
    EXPECT_EQ(resolved(name, {}, job, 64, WireType::fp32, timer).fusion, Bytes{0});
    const ThresholdRequest asked{.fusion = 8_MiB, .hybrid = {}, .group_size = {}};
    EXPECT_EQ(resolved(name, asked, job, 64, WireType::fp32, timer).fusion, 8_MiB);
  }
}

}  // namespace
}  // namespace paceline::simulator
