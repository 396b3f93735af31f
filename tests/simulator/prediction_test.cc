#include "simulator/prediction/prediction.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>
#include <utility>
#include <variant>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "simulator/engine/nccl_practice.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

struct Job {
  models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  models::Cluster cluster = models::catalog_cluster("jizhi-p40");

  [[nodiscard]] PredictionRequest request(int ranks) const {
    return {{}, network, cluster, nullptr, ranks, models::WireType::fp16};
  }
};

models::Profile with_transport() {
  const auto figure = [](auto value) {
    return Figure<decltype(value)>{value, value * 0.9, value * 1.1, Provenance::calibrated, "test"};
  };
  models::Profile profile;
  profile.transport = {.name = "open-mpi",
                       .smallest_message = Bytes{16384},
                       .largest_message = Bytes{262144},
                       .ahead = Bytes{524288},
                       .message_gap = figure(Seconds{1e-5})};
  profile.nic_bandwidth = figure(BytesPerSecond{3e7});
  for (const models::CurveKind kind :
       {models::CurveKind::exchange, models::CurveKind::all_reduce}) {
    profile.curves.push_back(
        {.kind = kind,
         .library = kind == models::CurveKind::all_reduce ? "open-mpi" : "",
         .ranks = 8,
         .pieces = {{Bytes{0}, figure(Seconds{1e-3}), figure(SecondsPerByte{4e-8})}},
         .residual = 0.01,
         .source = "test"});
  }
  return profile;
}

TEST(Prediction, ACalibratedTransportChoosesTheExecutorEngineAndKnowsTheLibrary) {
  const Job job;
  const models::Profile profile = with_transport();
  PredictionRequest request = job.request(8);
  EXPECT_THROW((void)Predictor(request).predict(models::strategy("open-mpi")), InputError);
  request.profile = &profile;
  Predictor predictor(request);
  const StrategyPrediction ring = predictor.predict(models::strategy("fused-ring"));
  EXPECT_EQ(ring.engine, EngineKind::executor);
  EXPECT_LT(ring.iteration.low, ring.iteration.value);
  EXPECT_GT(ring.iteration.high, ring.iteration.value);
  const StrategyPrediction library = predictor.predict(models::strategy("open-mpi"));
  EXPECT_EQ(library.timed_by, "its calibrated curve of fp32 between nodes");
  EXPECT_FALSE(library.by_library_model);
  // One bucket after the other, each alpha + n beta.
  const double gradients = static_cast<double>(request.network.parameters()) * 2;
  EXPECT_NEAR(library.spent.communication.value(),
              static_cast<double>(library.plan.buckets.size()) * 1e-3 + gradients * 4e-8,
              0.02 * gradients * 4e-8);
  request.engine = EngineKind::executor;
  request.profile = nullptr;
  EXPECT_THROW((void)Predictor(request).predict(models::strategy("ring")), InputError);
}

TEST(Prediction, TheLibrarysCurveIsThatOfTheNearestRanksAndSaysSo) {
  const Job job;  // of 8 ranks to a node
  models::Profile profile = with_transport();
  models::CalibratedCurve curve = profile.curves.back();
  for (const auto& [ranks, between, alpha] :
       {std::tuple{32, true, 3e-3}, {8, false, 1e-4}, {2, false, 5e-5}}) {
    curve.ranks = ranks;
    curve.between_nodes = between;
    curve.pieces.front().alpha.value = Seconds{alpha};
    profile.curves.push_back(curve);
  }
  const auto timed_by = [&](int ranks) {
    PredictionRequest request = job.request(ranks);
    request.profile = &profile;
    return Predictor(request).predict(models::strategy("open-mpi")).timed_by;
  };
  EXPECT_EQ(timed_by(32), "its calibrated curve of fp32");
  EXPECT_EQ(timed_by(64), "its calibrated curve of 32 ranks, scaled to 64 of fp32");
  EXPECT_EQ(timed_by(24), "its calibrated curve of 32 ranks, scaled to 24 of fp32");
  EXPECT_EQ(timed_by(16), "its calibrated curve of 8 ranks, scaled to 16 of fp32");
  EXPECT_EQ(timed_by(8), "its calibrated curve of fp32");
  EXPECT_EQ(timed_by(2), "its calibrated curve of fp32");
  profile.curves.resize(2);  // no curve within a node
  EXPECT_EQ(timed_by(4), "its calibrated curve of 8 ranks, scaled to 4 of fp32 between nodes");
}

TEST(Prediction, AnImportedCurveNeedsNoTransportAndGivesNcclAnInterval) {
  const Job job;  // of 8 ranks to a node
  models::Profile profile = with_transport();
  profile.transport.reset();
  PredictionRequest in_a_node = job.request(8);
  in_a_node.profile = &profile;
  EXPECT_EQ(Predictor(in_a_node).predict(models::strategy("open-mpi")).timed_by,
            "its calibrated curve of fp32 between nodes");
  PredictionRequest request = job.request(16);
  request.profile = &profile;
  profile.curves.back().library = "nccl";
  profile.curves.back().ranks = 16;
  profile.curves.back().source = "all_reduce.txt (nccl-tests)";
  const StrategyPrediction by_curve = Predictor(request).predict(models::strategy("nccl"));
  EXPECT_EQ(by_curve.timed_by, "its calibrated curve of fp32 (all_reduce.txt (nccl-tests))");
  EXPECT_FALSE(by_curve.by_library_model);
  EXPECT_LT(by_curve.iteration.low, by_curve.iteration.value);
  // One bucket after the other, each alpha + n beta.
  const double gradients = static_cast<double>(request.network.parameters()) * 2;
  EXPECT_NEAR(by_curve.spent.communication.value(),
              static_cast<double>(by_curve.plan.buckets.size()) * 1e-3 + gradients * 4e-8,
              0.02 * gradients * 4e-8);
  request.profile = nullptr;
  const StrategyPrediction by_model = Predictor(request).predict(models::strategy("nccl"));
  EXPECT_TRUE(by_model.by_library_model);
  EXPECT_LT(by_model.spent.communication, by_curve.spent.communication);
}

TEST(Prediction, EveryRowIsConsistent) {
  const Job job;
  for (const int ranks : {1, 4, 8, 16, 24, 1000, 1024, 2048}) {
    Predictor predictor(job.request(ranks));
    for (const models::Strategy& strategy : models::strategy_catalogue()) {
      // Their flows take seconds to follow where they are many.
      const bool is_slow = strategy.traits().all_at_once || strategy.name == "double-binary-tree";
      if (is_slow && ranks > 24) continue;
      // Known from a calibrated curve only.
      if (strategy.name == "open-mpi") continue;
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

TEST(Prediction, ExactComputeHasNoIntervalAndWaitsForNoInput) {
  Job job;
  job.cluster.decode_per_node = Figure<PerSecond>{PerSecond{10}, PerSecond{5}, PerSecond{20},
                                                  Provenance::assumed, "a slow node"};
  PredictionRequest request = job.request(1);
  const StrategyPrediction waits = Predictor(request).predict(models::strategy("ring"));
  EXPECT_NEAR(waits.iteration.value.value(), 6.4, 0.1);
  request.compute_is_exact = true;
  const StrategyPrediction exact = Predictor(request).predict(models::strategy("ring"));
  EXPECT_EQ(exact.spent.input_wait, Seconds{0});
  EXPECT_EQ(exact.iteration.low, exact.iteration.value);
  EXPECT_EQ(exact.iteration.high, exact.iteration.value);
}

TEST(Prediction, OneRankDoesNotCommunicate) {
  const Job job;
  Predictor predictor(job.request(1));
  const StrategyPrediction p = predictor.predict(models::strategy("ring"));
  EXPECT_EQ(p.spent.communication.value(), 0);
  EXPECT_EQ(p.efficiency, 1);
  EXPECT_EQ(p.plan.buckets.size(), 161u);
}

// Communication is the sum of what NCCL takes for the buckets, and what it takes to start each.
TEST(Prediction, NcclIsTimedByItsOwnChoice) {
  const Job job;
  PredictionRequest request = job.request(64);
  request.thresholds.fusion = Bytes{0};
  Predictor predictor(request);
  const StrategyPrediction p = predictor.predict(models::strategy("nccl"));
  const StrategyRun run = predictor.run(models::strategy("nccl"));
  const NcclPractice nccl(nccl_tables(nccl_versions().back()), job.cluster, 64,
                          communication_cost(job.cluster, request.profile, Bound::stated, 64),
                          Bound::stated);
  Seconds all;
  for (const models::Bucket& bucket : run.plan.buckets)
    all += nccl.time(run.plan.bytes(bucket)) + job.cluster.effects->collective_launch.value;
  EXPECT_NEAR(p.spent.communication.value(), all.value(), 1e-12);
  EXPECT_TRUE(p.by_library_model);
  EXPECT_EQ(p.timed_by, described(nccl));
  EXPECT_LT(p.iteration.low, p.iteration.value);
  EXPECT_GT(p.iteration.high, p.iteration.value);
  EXPECT_EQ(run.timed_by, p.timed_by);
  const StrategyPrediction ring = predictor.predict(models::strategy("fused-ring"));
  EXPECT_FALSE(ring.by_library_model);
  EXPECT_EQ(ring.timed_by, "step engine");
}

// Horovod, fused buckets and those after the backward pass leave the choice to NCCL, which has one from
// GPUs of 2020 on, and on others where its version is named.
TEST(Prediction, WhatLeavesTheChoiceToNcclIsTimedByIt) {
  Job job;
  job.cluster = models::catalog_cluster("h200-ndr");
  Predictor today(job.request(64));
  const Seconds nccl = today.predict(models::strategy("nccl")).iteration.value;
  const StrategyPrediction fused = today.predict(models::strategy("fused-ring"));
  EXPECT_EQ(fused.iteration.value, nccl);
  EXPECT_EQ(fused.name, "fused-ring");
  EXPECT_TRUE(fused.by_library_model);
  for (const char* name : {"horovod", "no-overlap", "one-bucket"}) {
    const StrategyPrediction row = today.predict(models::strategy(name));
    EXPECT_NE(row.plan.uses<models::Library>(), nullptr) << name;
    EXPECT_EQ(Predictor(job.request(64)).predict(row.plan).iteration.value, row.iteration.value)
        << name;
  }
  EXPECT_EQ(today.predict(models::strategy("ddp-ring")).plan.uses<models::Library>(), nullptr);
  EXPECT_EQ(today.predict(models::strategy("ring")).plan.uses<models::Library>(), nullptr);
  // Schedules that our runtime runs are its own.
  PredictionRequest slept = job.request(64);
  slept.compute_is_exact = true;
  EXPECT_EQ(Predictor(slept).predict(models::strategy("fused-ring")).timed_by, "step engine");

  job.cluster = models::catalog_cluster("aws-p3-16xlarge");
  PredictionRequest before = job.request(64);
  EXPECT_FALSE(Predictor(before).predict(models::strategy("horovod")).by_library_model);
  before.nccl_version = nccl_versions().back();
  EXPECT_TRUE(Predictor(before).predict(models::strategy("horovod")).by_library_model);
}

// A plan that was written down is predicted as the row that wrote it.
TEST(Prediction, OfAPlanIsThatOfItsRow) {
  const Job job;
  for (const int ranks : {1, 16, 64}) {
    for (const models::Overlap overlap :
         {models::Overlap::wait_free, models::Overlap::double_buffered}) {
      PredictionRequest request = job.request(ranks);
      request.overlap = overlap;
      request.thresholds.streams = 2;
      Predictor predictor(request);
      for (const models::Strategy& strategy : models::strategy_catalogue()) {
        const bool is_slow = strategy.traits().all_at_once || strategy.name == "double-binary-tree";
        if ((is_slow && ranks > 16) || strategy.name == "open-mpi") continue;
        const StrategyPrediction row = predictor.predict(strategy);
        // The request names none of the options that the plan holds.
        const StrategyPrediction planned = Predictor(job.request(ranks)).predict(row.plan);
        EXPECT_EQ(planned.iteration.value, row.iteration.value) << strategy.name;
        // Exposed communication may differ in its last digit, and so may the ends.
        EXPECT_DOUBLE_EQ(planned.iteration.low.value(), row.iteration.low.value()) << strategy.name;
        EXPECT_DOUBLE_EQ(planned.iteration.high.value(), row.iteration.high.value())
            << strategy.name;
        EXPECT_EQ(planned.efficiency, row.efficiency) << strategy.name;
        EXPECT_EQ(planned.timed_by, row.timed_by);
        EXPECT_EQ(planned.plan, row.plan);
        EXPECT_TRUE(row.thresholds);
        EXPECT_FALSE(planned.thresholds);
      }
    }
  }
}

// The baseline is the strategy's best on p0 ranks, whatever the row on p ranks was asked to do.
TEST(Prediction, EfficiencyIsAgainstTheBestOfTheBaselinesRanks) {
  const Job job;
  const auto throughput_per_rank = [&](const char* strategy, int ranks) {
    return Predictor(job.request(ranks)).predict(models::strategy(strategy)).throughput / ranks;
  };
  for (const char* strategy : {"fused-ring", "hybrid", "multi-ring"}) {
    for (const int p0 : {1, 4, 8, 64}) {
      PredictionRequest request = job.request(64);
      request.thresholds = {.fusion = Bytes{0}, .group_size = 2};
      request.baseline_ranks = p0;
      const StrategyPrediction row = Predictor(request).predict(models::strategy(strategy));
      EXPECT_EQ(row.baseline_ranks, p0);
      EXPECT_NEAR(row.efficiency, row.throughput / 64 / throughput_per_rank(strategy, p0), 1e-12)
          << strategy << " against " << p0;
      EXPECT_LE(row.efficiency, 1.001);  // the planner takes theta to 0.1 %
    }
    // A row that chooses for itself is its own baseline.
    PredictionRequest request = job.request(64);
    request.baseline_ranks = 64;
    EXPECT_EQ(Predictor(request).predict(models::strategy(strategy)).efficiency, 1);
  }
  for (const int wrong : {0, -1, 65}) {
    PredictionRequest request = job.request(64);
    request.baseline_ranks = wrong;
    EXPECT_EQ(
        test::error_of([&] { return Predictor(request).predict(models::strategy("ring")).name; }),
        fmt::format("--baseline: {} ranks are no baseline of 64; choose 1 to 64", wrong));
  }
}

// Stragglers cost efficiency, and so do ranks that nobody waits for.
TEST(Prediction, EfficiencyWithStragglersCountsThem) {
  const Job job;
  PredictionRequest request = job.request(16);
  MonteCarloRequest stragglers;
  stragglers.stragglers.slow_ranks = {{3, 2.0}};
  stragglers.iterations = 50;
  request.stragglers = stragglers;
  const StrategyPrediction slow = Predictor(request).predict(models::strategy("fused-ring"));
  ASSERT_TRUE(slow.stragglers);
  const double ratio = slow.iteration.value / slow.stragglers->iteration.mean;
  EXPECT_LT(ratio, 0.7);
  EXPECT_NEAR(slow.stragglers->efficiency, slow.efficiency * ratio, 1e-12);
  request.stragglers->stragglers.backup = 4;
  const StrategyPrediction backed = Predictor(request).predict(models::strategy("fused-ring"));
  EXPECT_NEAR(
      backed.stragglers->efficiency,
      backed.efficiency * 12 / 16 * (backed.iteration.value / backed.stragglers->iteration.mean),
      1e-12);
  EXPECT_NEAR(backed.stragglers->efficiency,
              backed.efficiency * (backed.stragglers->throughput / backed.throughput), 1e-12);
}

// A P40 has 24 GB.
TEST(Prediction, SaysWhatDoesNotFitTheDevice) {
  const Job job;
  PredictionRequest request = job.request(16);
  const StrategyPrediction small = Predictor(request).predict(models::strategy("fused-ring"));
  EXPECT_TRUE(small.fits);
  EXPECT_LT(small.memory.total(), job.cluster.device.memory.value);
  EXPECT_GT(small.largest_batch, 64);
  request.batch_per_rank = small.largest_batch;
  EXPECT_TRUE(Predictor(request).predict(models::strategy("fused-ring")).fits);
  request.batch_per_rank = 2 * small.largest_batch;
  const StrategyPrediction large = Predictor(request).predict(models::strategy("fused-ring"));
  EXPECT_FALSE(large.fits);
  EXPECT_EQ(large.memory.activations, 2 * small.largest_batch / 64.0 * small.memory.activations);
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

TEST(Prediction, ATableInHasteSaysWhichRowsAreCoarseOrLeftOutAndWhatAsksForThem) {
  const Job job;
  PredictionRequest request = job.request(1024);
  request.time_budget = TimeBudget::bounded;
  Predictor hasty(request);
  const auto servers = hasty.row(models::strategy("parameter-server"));
  ASSERT_TRUE(std::holds_alternative<LeftOut>(servers));
  EXPECT_EQ(std::get<LeftOut>(servers).name, "parameter-server");
  EXPECT_EQ(std::get<LeftOut>(servers).remedy, "--strategy parameter-server asks for it");
  const auto tree = hasty.row(models::strategy("double-binary-tree"));
  ASSERT_TRUE(std::holds_alternative<StrategyPrediction>(tree));
  EXPECT_EQ(std::get<StrategyPrediction>(tree).engine, EngineKind::step);
  EXPECT_GT(std::get<StrategyPrediction>(tree).not_followed, 1e6);
  // Rows that do not take long are the same with a bounded time budget.
  const auto scatter = hasty.row(models::strategy("hierarchical-scatter"));
  request.time_budget = TimeBudget::unlimited;
  const StrategyPrediction patient =
      Predictor(request).predict(models::strategy("hierarchical-scatter"));
  EXPECT_EQ(std::get<StrategyPrediction>(scatter).iteration.value, patient.iteration.value);
  EXPECT_EQ(std::get<StrategyPrediction>(scatter).not_followed, 0);
}

// The strategies of one table do not all have stragglers, or every overlap.
TEST(Prediction, ATableLeavesOutAStrategyThatLacksWhatIsAskedFor) {
  const Job job;
  PredictionRequest request = job.request(16);
  request.stragglers = MonteCarloRequest{};
  const auto straggling = Predictor(request).row(models::strategy("fsdp"));
  ASSERT_TRUE(std::holds_alternative<LeftOut>(straggling));
  EXPECT_EQ(std::get<LeftOut>(straggling).why, "no stragglers are simulated with fsdp");
  EXPECT_FALSE(std::get<LeftOut>(straggling).takes_long);
  request.stragglers.reset();
  request.overlap = models::Overlap::priority;
  const auto early = Predictor(request).row(models::strategy("zero1"));
  ASSERT_TRUE(std::holds_alternative<LeftOut>(early));
  EXPECT_EQ(std::get<LeftOut>(early).why, "zero1 has no overlap priority");
}

// A slider of k must not stop a page for ten seconds.
TEST(Prediction, ATableInHasteLeavesOutWhatTakesLongWithTheKThatWasNamed) {
  const Job job;
  PredictionRequest request = job.request(1024);
  request.time_budget = TimeBudget::bounded;
  request.thresholds.group_size = 256;
  Predictor hasty(request);
  for (const char* name : {"hierarchical", "hybrid", "multi-ring"}) {
    const auto row = hasty.row(models::strategy(name));
    ASSERT_TRUE(std::holds_alternative<LeftOut>(row)) << name;
    EXPECT_EQ(std::get<LeftOut>(row).why, "its messages take long to follow with k = 256");
    EXPECT_EQ(std::get<LeftOut>(row).remedy, std::string("--strategy ") + name + " asks for it");
  }
  EXPECT_TRUE(std::holds_alternative<StrategyPrediction>(
      hasty.row(models::strategy("hierarchical-scatter"))));
  request.thresholds.group_size = 16;
  Predictor with_few(request);
  EXPECT_TRUE(
      std::holds_alternative<StrategyPrediction>(with_few.row(models::strategy("multi-ring"))));
}

}  // namespace
}  // namespace paceline::simulator
