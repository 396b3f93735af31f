#include "simulator/export/horovod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"

namespace paceline::simulator {
namespace {

using testing::Contains;
using testing::HasSubstr;

class Horovod : public testing::Test {
 protected:
  [[nodiscard]] PredictionRequest request(int ranks = 64) const {
    return {{.batch_per_rank = 1, .precision = models::Precision::fp32},
            network_,
            cluster_,
            nullptr,
            ranks,
            models::WireType::fp16};
  }
  [[nodiscard]] models::Plan plan(const char* strategy, const models::Thresholds& thresholds,
                                  int ranks = 64) const {
    return models::make_plan(models::strategy(strategy), network_.gradients, ranks,
                             models::WireType::fp16, thresholds);
  }
  [[nodiscard]] Seconds iteration(double fusion, double cycle_ms) const {
    PredictionRequest with = request();
    with.thresholds.fusion = Bytes{fusion};
    with.thresholds.cycle = Seconds{1e-3 * cycle_ms};
    return Predictor(with).run(models::strategy("horovod")).steady.period;
  }

 private:
  models::NetworkWork network_ = models::work(models::zoo_network("resnet50"));
  models::Cluster cluster_ = models::catalog_cluster("jizhi-p40");
};

TEST_F(Horovod, TheSettingsAreTheBestOfTheGrid) {
  const models::Plan asked = plan("fused-ring", {.fusion = Bytes{4e6}});
  const HorovodSettings settings = horovod_settings(asked, request());
  EXPECT_EQ(settings.iteration, iteration(settings.fusion.value(), 1e3 * settings.cycle.value()));
  for (const double fusion : {0.0, 65536.0, 1048576.0, 4194304.0, 67108864.0, 268435456.0}) {
    for (const double cycle : {0.5, 1.0, 2.5, 5.0, 10.0})
      EXPECT_LE(settings.iteration, iteration(fusion, cycle) * 1.00011) << fusion << " " << cycle;
  }
  EXPECT_FALSE(settings.hierarchical);
  EXPECT_EQ(settings.asked, Predictor(request()).run(asked).steady.period);
}

TEST_F(Horovod, GroupsOfANodeAreHierarchical) {
  EXPECT_TRUE(horovod_settings(
                  plan("hierarchical-scatter", {.fusion = Bytes{4e6}, .group_size = 8}), request())
                  .hierarchical);
  // Groups that are no nodes, and groups of a job on one node.
  EXPECT_FALSE(horovod_settings(
                   plan("hierarchical-scatter", {.fusion = Bytes{4e6}, .group_size = 4}), request())
                   .hierarchical);
  EXPECT_FALSE(
      horovod_settings(plan("hierarchical-scatter", {.fusion = Bytes{4e6}, .group_size = 8}, 8),
                       request(8))
          .hierarchical);
}

TEST_F(Horovod, WhatItCannotBeToldIsALineEach) {
  models::Plan asked = plan("double-binary-tree", {.fusion = Bytes{4e6}, .streams = 2}, 8);
  asked.overlap = models::Overlap::priority;
  const ExportedText exported = horovod_text("t", asked, request(8));
  EXPECT_THAT(exported.notes, Contains(HasSubstr("Horovod would make ")));
  EXPECT_THAT(exported.notes, Contains(HasSubstr("double-binary-tree: Horovod has no such")));
  EXPECT_THAT(exported.notes, Contains(HasSubstr("fp16 on the wire is the script's")));
  EXPECT_THAT(exported.notes, Contains(HasSubstr("overlap priority")));
  EXPECT_THAT(exported.text, HasSubstr("\nHOROVOD_NUM_NCCL_STREAMS=2\n"));
  EXPECT_THAT(exported.text, HasSubstr("\nHOROVOD_HIERARCHICAL_ALLREDUCE=0\n"));
  const ExportedText many =
      horovod_text("t", plan("fused-ring", {.fusion = Bytes{4e6}, .streams = 9}, 8), request(8));
  EXPECT_THAT(many.notes, Contains(HasSubstr("9 streams are more than Horovod is given")));
  EXPECT_THAT(many.text, testing::Not(HasSubstr("STREAMS")));
}

}  // namespace
}  // namespace paceline::simulator
