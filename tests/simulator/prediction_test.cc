#include "simulator/iteration/prediction.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/network/zoo.h"

namespace paceline::simulator {
namespace {

struct Job {
  models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  models::Cluster cluster = models::catalog_cluster("jizhi-p40");

  [[nodiscard]] PredictionRequest request(int ranks) const {
    return {.network = network,
            .cluster = cluster,
            .profile = nullptr,
            .ranks = ranks,
            .batch_per_rank = 64,
            .precision = models::Precision::mixed,
            .wire = models::WireType::fp16,
            .thresholds = {},
            .overlap = {},
            .stored_sample = Bytes{0}};
  }
};

TEST(Prediction, EveryRowIsConsistent) {
  const Job job;
  for (const int ranks : {1, 4, 8, 16, 24, 1000, 1024, 2048}) {
    Predictor predictor(job.request(ranks));
    for (const models::Strategy& strategy : models::strategy_catalogue()) {
      // Their flows take seconds to follow where they are many.
      const bool is_slow = strategy.on_servers || strategy.name == "double-binary-tree";
      if (is_slow && ranks > 24) continue;
      const StrategyPrediction p = predictor.predict(strategy);
      const double period = p.iteration.value.value();
      EXPECT_TRUE(p.converged);
      EXPECT_LE(p.iteration.low, p.iteration.value);
      EXPECT_GE(p.iteration.high, p.iteration.value);
      EXPECT_EQ(p.iteration.provenance, Provenance::predicted);
      EXPECT_NEAR((p.spent.compute + p.spent.exposed_communication + p.spent.input_wait).value(),
                  period, 1e-9 * period);
      EXPECT_NEAR(p.throughput.value(), ranks * 64 / period, 1e-6 * p.throughput.value());
      EXPECT_LE(p.efficiency, 1 + 1e-9) << p.name << " on " << ranks;
      EXPECT_EQ(p.baseline_ranks, ranks >= 8 ? 8 : 1);
      EXPECT_LE(p.spent.exposed_communication.value(), p.spent.communication.value() + 1e-12);
      Seconds on_path;
      for (const PathShare& share : p.critical_path) on_path += share.time;
      EXPECT_NEAR(on_path.value(), period, 1e-9 * period) << p.name << " on " << ranks;
    }
  }
}

TEST(Prediction, OneRankDoesNotCommunicate) {
  const Job job;
  Predictor predictor(job.request(1));
  const StrategyPrediction p = predictor.predict(models::strategy("ring"));
  EXPECT_EQ(p.spent.communication.value(), 0);
  EXPECT_EQ(p.efficiency, 1);
  EXPECT_EQ(p.buckets, 161);
}

// Communication is the sum of what NCCL's model says of the buckets, and what we pack and unpack.
TEST(Prediction, NcclIsTimedByItsOwnModel) {
  const Job job;
  PredictionRequest request = job.request(64);
  request.thresholds.fusion = Bytes{0};
  Predictor predictor(request);
  const StrategyPrediction p = predictor.predict(models::strategy("nccl"));
  const StrategyRun run = predictor.run(models::strategy("nccl"));
  const NcclModel model(nccl_tables(nccl_versions().back()), job.cluster, 64);
  Seconds all;
  for (const models::Bucket& bucket : run.plan.buckets) all += model.time(run.plan.bytes(bucket));
  EXPECT_NEAR(p.spent.communication.value(), all.value(), 1e-12);
  EXPECT_TRUE(p.is_library);
  EXPECT_EQ(p.timed_by, "NCCL 2.28.3-1's own tuning model (tuning.cc)");
  EXPECT_EQ(run.timed_by, p.timed_by);
  const StrategyPrediction ring = predictor.predict(models::strategy("fused-ring"));
  EXPECT_FALSE(ring.is_library);
  EXPECT_EQ(ring.timed_by, "step engine");
}

TEST(Prediction, OverlapNeverHurts) {
  const Job job;
  PredictionRequest request = job.request(1024);
  request.thresholds.fusion = Bytes{8e6};
  const Seconds overlapped =
      Predictor(request).predict(models::strategy("fused-ring")).iteration.value;
  const Seconds serial = Predictor(request).predict(models::strategy("no-overlap")).iteration.value;
  EXPECT_LE(overlapped, serial);
}

TEST(Prediction, HalfTheBytesAreNeverSlower) {
  const Job job;
  PredictionRequest request = job.request(1024);
  request.thresholds = {.fusion = Bytes{1e7}, .hybrid = Bytes{1e7}, .group_size = 16};
  PredictionRequest full = request;
  full.wire = models::WireType::fp32;
  full.thresholds = {.fusion = Bytes{2e7}, .hybrid = Bytes{2e7}, .group_size = 16};
  for (const char* name : {"fused-ring", "hybrid", "hierarchical"}) {
    EXPECT_LE(Predictor(request).predict(models::strategy(name)).iteration.value,
              Predictor(full).predict(models::strategy(name)).iteration.value);
  }
}

TEST(Prediction, RanksThatDoNotFitAreRefused) {
  const Job job;
  EXPECT_THROW(Predictor{job.request(2049)}, InputError);
  EXPECT_THROW(Predictor{job.request(0)}, InputError);
}

}  // namespace
}  // namespace paceline::simulator
