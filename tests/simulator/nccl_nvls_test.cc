// What NCCL expects where NVSwitches reduce: its bandwidths by hand, and what NVIDIA and users report.
#include "simulator/cost/nccl_nvls.h"

#include <gtest/gtest.h>

#include <optional>

#include "models/cluster/catalog.h"
#include "simulator/engine/nccl_practice.h"

namespace paceline::simulator {
namespace {

constexpr Bytes large{1LL << 34};

struct Job {
  models::Cluster cluster = models::catalog_cluster("h200-ndr");
  int ranks = 8;

  [[nodiscard]] NcclModel model() const { return {nccl_tables("2.28"), cluster, ranks}; }
  [[nodiscard]] std::optional<NcclNvls> nvls() const { return nccl_nvls(model(), cluster); }
  [[nodiscard]] double bus_gbps() const {
    return bus_bandwidth(ranks, large, nvls()->transfer(ranks, large)).value() / 1e9;
  }
};

// 8 channels of 40 GB/s: 2 x 0.85 x 7/8 x 320 GB/s. 480 GB/s are reported (nccl-tests#212,
// NVIDIA/nccl#1455).
TEST(NcclNvls, OfANodeOfHoppers) {
  const Job job;
  EXPECT_NEAR(job.bus_gbps(), 476, 1e-6);
  EXPECT_NEAR(job.nvls()->latency.value(), 25e-6, 1e-12);
}

// Between two nodes 57.7 GB/s a channel bound it, between more 45.5, which is less than a NIC.
TEST(NcclNvls, BetweenNodes) {
  EXPECT_NEAR((Job{.ranks = 16}.bus_gbps()), 8 * 57.7, 1e-6);
  EXPECT_NEAR((Job{.ranks = 32}.bus_gbps()), 8 * 45.5, 1e-6);
  EXPECT_NEAR((Job{.ranks = 16}.nvls()->latency.value()), 53e-6, 1e-12);
  EXPECT_NEAR((Job{.ranks = 32}.nvls()->latency.value()), 81e-6, 1e-12);
}

TEST(NcclNvls, NeedsSwitchesThatReduce) {
  Job job;
  job.ranks = 2;
  EXPECT_FALSE(job.nvls());
  job.ranks = 12;
  EXPECT_FALSE(job.nvls()) << "one node of 8 and one of 4";
  job.ranks = 8;
  job.cluster.device = models::catalog_device("a100");
  EXPECT_FALSE(job.nvls());
  Job mesh;
  mesh.cluster.intra_kind = models::IntraKind::all_to_all;
  EXPECT_FALSE(mesh.nvls());
}

NcclPractice practice(const Job& job) {
  return {nccl_tables("2.28"), job.cluster, job.ranks,
          communication_cost(job.cluster, nullptr, Bound::stated, job.ranks), Bound::stated};
}

// Large all-reduces of 8 H200 pass the bandwidth of a ring; those of 4 do not (NVIDIA/nccl#1455).
TEST(NcclNvls, IsTakenWhereNcclExpectsLessOfIt) {
  const auto gain = [](int ranks) {
    Job job;
    job.ranks = ranks;
    const NcclPractice in_practice = practice(job);
    return in_practice.time(large, NcclAlgorithm::ring) / in_practice.time(large);
  };
  EXPECT_NEAR(gain(8), 480.0 / 367, 0.05);
  EXPECT_NEAR(gain(4), 1, 0.05);
}

}  // namespace
}  // namespace paceline::simulator
