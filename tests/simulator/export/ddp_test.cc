#include "simulator/export/ddp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"

namespace paceline::simulator {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr double mebibyte = 1024.0 * 1024;

class Ddp : public testing::Test {
 protected:
  explicit Ddp(const char* cluster = "jizhi-p40") : cluster_(models::catalog_cluster(cluster)) {}

  [[nodiscard]] PredictionRequest request(models::WireType wire = models::WireType::fp16) const {
    return {{.batch_per_rank = 1, .precision = models::Precision::fp32},
            network_,
            cluster_,
            nullptr,
            64,
            wire};
  }
  [[nodiscard]] models::Plan plan(const char* strategy, const models::Thresholds& thresholds,
                                  models::WireType wire = models::WireType::fp16) const {
    return models::make_plan(models::strategy(strategy), network_.gradients, 64, wire, thresholds);
  }
  // The iteration of DDP with this cap for all buckets, in bytes of FP32.
  [[nodiscard]] Seconds iteration(double cap) const {
    return Predictor(request()).run(plan("ddp", {.fusion = Bytes{cap / 2}})).steady.period;
  }

 private:
  models::NetworkWork network_ = models::work(models::zoo_network("resnet50"));
  models::Cluster cluster_;
};

TEST_F(Ddp, TheCapIsTheBestOfTheGrid) {
  const models::Plan asked = plan("fused-ring", {.fusion = Bytes{4e6}});
  const DdpSettings settings = ddp_settings(asked, request());
  EXPECT_EQ(settings.asked, Predictor(request()).run(asked).steady.period);
  EXPECT_EQ(settings.by_default.iteration,
            Predictor(request()).run(models::strategy("ddp")).steady.period);
  EXPECT_LE(settings.best.iteration, settings.by_default.iteration);
  if (settings.best.cap) EXPECT_EQ(settings.best.iteration, iteration(settings.best.cap->value()));
  for (const double cap : {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 98.0})
    EXPECT_LE(settings.best.iteration, iteration(cap * mebibyte) * 1.00011) << cap;
}

// DDP's own plan is what its default says: no line, no cap, and not a moment longer.
TEST_F(Ddp, ItsOwnPlanIsItsDefault) {
  const StrategyRun run = Predictor(request()).run(models::strategy("ddp"));
  const DdpSettings settings = ddp_settings(run.plan, request());
  EXPECT_EQ(settings.asked, settings.by_default.iteration);
  if (!settings.best.cap) EXPECT_TRUE(settings.is_plan);
}

TEST_F(Ddp, WhatItCannotBeToldIsALineEach) {
  models::Plan asked =
      plan("double-binary-tree", {.fusion = Bytes{4e6}, .streams = 2}, models::WireType::bf16);
  asked.overlap = models::Overlap::priority;
  PredictionRequest with = request(models::WireType::bf16);
  with.accumulate = 4;
  const ExportedText exported = ddp_text("t", asked, with);
  EXPECT_THAT(exported.notes, Contains(HasSubstr("DDP would make ")));
  EXPECT_THAT(exported.notes, Contains(HasSubstr("double-binary-tree: DDP has no such choice")));
  EXPECT_THAT(exported.notes, Contains(HasSubstr("overlap priority")));
  EXPECT_THAT(exported.notes, Contains(HasSubstr("2 streams")));
  EXPECT_THAT(exported.notes, Contains(HasSubstr("ddp.no_sync()")));
  EXPECT_THAT(exported.text, HasSubstr("default_hooks.bf16_compress_hook)\n"));
  const ExportedText plain =
      ddp_text("t", plan("fused-ring", {.fusion = Bytes{4e6}}, models::WireType::fp32),
               request(models::WireType::fp32));
  EXPECT_THAT(plain.text, Not(HasSubstr("hook")));
  EXPECT_THAT(plain.text, HasSubstr("\nddp = DistributedDataParallel(model"));
}

}  // namespace
}  // namespace paceline::simulator
