// The effects of a cluster: which count where nothing is said, and what a cluster file says of them.
#include "models/cluster/effects.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/cluster/yaml.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

std::string cluster(const std::string& device, int ranks_per_node, const std::string& effects) {
  return "cluster: lab\nnodes: 4\nranks_per_node: " + std::to_string(ranks_per_node) +
         "\ndevice: " + device + "\nintra: pcie3-x16\nnic: roce-25g\n" + effects;
}

Cluster parsed(const std::string& device, int ranks_per_node, const std::string& effects = "") {
  return parse_cluster_yaml(cluster(device, ranks_per_node, effects), "f");
}

std::string error_of(const std::string& effects, const std::string& device = "v100") {
  try {
    (void)parsed(device, 4, effects);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ClusterEffects, CountWhereTheFileDoesNotSayNone) {
  EXPECT_TRUE(parsed("v100", 4).effects.has_value());
  EXPECT_TRUE(parsed("knl-7250", 4).effects.has_value());
  EXPECT_FALSE(parsed("v100", 4, "effects: none\n").effects.has_value());
}

TEST(ClusterEffects, NameTheirSources) {
  const Effects effects = *parsed("a100", 8).effects;
  for (const Figure<double>* figure :
       {&effects.rank_spread, &effects.jitter, &effects.crowding, &effects.slowdown,
        &effects.memory_bound, &effects.unexplained, &effects.unexplained_doubling,
        &effects.unexplained_exposed}) {
    EXPECT_GT(figure->source.size(), 10U);
    EXPECT_LE(figure->low, figure->value);
    EXPECT_LE(figure->value, figure->high);
  }
}

// A processor waits like a GPU, and what is unexplained is so of both; it launches nothing.
TEST(ClusterEffects, OfProcessorsAreThoseOfWaitingAlone) {
  const Effects gpu = *parsed("v100", 4).effects;
  const Effects processor = *parsed("xeon-8160", 4).effects;
  EXPECT_EQ(processor.rank_spread, gpu.rank_spread);
  EXPECT_EQ(processor.jitter, gpu.jitter);
  EXPECT_EQ(processor.unexplained, gpu.unexplained);
  EXPECT_EQ(processor.crowding.high, 1);
  EXPECT_EQ(processor.slowdown.high, 0);
  EXPECT_EQ(processor.collective_launch.high, Seconds{0});
  EXPECT_EQ(processor.layer_launch.high, Seconds{0});
  EXPECT_EQ(processor.host_launch.high, Seconds{0});
}

// Blower cards in a box heat each other, however many there may be: how many are busy is the job's.
TEST(ClusterEffects, OfGeforceCardsHaveCrowding) {
  EXPECT_GT(parsed("rtx-2080-ti", 4).effects->crowding.value, 1);
  EXPECT_GT(parsed("rtx-2080-ti", 2).effects->crowding.value, 1);
  EXPECT_EQ(parsed("v100", 8).effects->crowding.value, 1);
}

TEST(ClusterEffects, AreTheFilesWhereItNamesThem) {
  const Effects effects =
      *parsed("v100", 4,
              "effects: {rank_spread: 0.02, collective_launch: {value: 30 us, low: 20 us, high: 50 "
              "us, provenance: measured, source: nsys}}\n")
           .effects;
  EXPECT_EQ(effects.rank_spread.value, 0.02);
  EXPECT_NEAR(effects.collective_launch.high.value(), 50e-6, 1e-15);
  EXPECT_EQ(effects.collective_launch.provenance, Provenance::measured);
  EXPECT_EQ(effects.jitter, catalog_cluster("jizhi-p40").effects->jitter);
}

// Fewer launches by the host leave a layer less of a time of its own.
TEST(ClusterEffects, AStackSaysWhatALayerTakesWhateverTheBatch) {
  Cluster previous = parsed("h100", 8);
  for (const auto& [stack, word] : stacks) {
    Cluster named = parsed("h100", 8);
    take_stack(stack, named);
    if (stack != Stack::eager)
      EXPECT_LT(named.effects->host_launch.value, previous.effects->host_launch.value) << word;
    EXPECT_LT(named.effects->host_launch.low, named.effects->host_launch.high) << word;
    EXPECT_GE(named.effects->host_launch_transformer.value, named.effects->host_launch.value)
        << word;
    EXPECT_EQ(named.effects->layer_launch, previous.effects->layer_launch) << "the GPU is the same";
    EXPECT_EQ(parsed("h100", 8, fmt::format("effects: {{stack: {}}}\n", word)).effects,
              named.effects);
    previous = named;
  }
  EXPECT_EQ(error_of("effects: {stack: graph}\n"),
            "f:7:18: stack: unknown stack 'graph'; did you mean 'graphs'?");
  EXPECT_EQ(error_of("effects: {stack: graphs, layer_launch: 1 us}\n"),
            "f:7:18: a stack, and layer_launch, which it says; leave one of the two out");
  Cluster processors = parsed("knl-7250", 1);
  EXPECT_THROW(take_stack(Stack::graphs, processors), InputError);
}

// Where nobody names a stack, a GPU of 2020 and later has an interval that holds graphs and the prior of eager.
// An earlier GPU has the prior of the frameworks of its time.
TEST(ClusterEffects, OfAStackThatNobodyNamesAreThoseOfTheDevicesTime) {
  const Effects before = *parsed("v100", 8).effects;
  const Effects today = *parsed("a100", 8).effects;
  EXPECT_EQ(before.host_launch.high, Seconds{0});
  EXPECT_LT(before.mixed_launch_share, 1);
  EXPECT_EQ(today.mixed_launch_share, 1);
  EXPECT_LT(today.layer_launch.high, before.layer_launch.low);
  Cluster graphs = parsed("a100", 8);
  take_stack(Stack::graphs, graphs);
  Cluster eager = parsed("a100", 8);
  take_stack(Stack::eager, eager);
  EXPECT_LE(today.host_launch.low, graphs.effects->host_launch.low);
  EXPECT_GE(today.host_launch.high, eager.effects->host_launch.value);
  Cluster named = parsed("v100", 8);
  take_stack(Stack::eager, named);
  EXPECT_EQ(named.effects->layer_launch, today.layer_launch);
}

TEST(ClusterEffects, AreRefusedInOneLine) {
  EXPECT_EQ(error_of("effects: some\n"),
            "f:7:10: effects: 'some'; write none, or those that differ, as in {rank_spread: 0.02}");
  EXPECT_NE(error_of("effects: {rank_sprad: 0.02}\n").find("did you mean 'rank_spread'"),
            std::string::npos);
  EXPECT_NE(error_of("effects: {jitter: -1}\n").find("f:7"), std::string::npos);
  EXPECT_NE(error_of("effects: {crowding: 0}\n").find("not more than 0"), std::string::npos);
  EXPECT_NE(error_of("effects: {layer_launch: 5}\n").find("f:7"), std::string::npos);
  EXPECT_EQ(error_of("effects: {jitter: 0.01}\n", "knl-7250"), "no error");
}

// A kernel of attention that is named has its own rate, where that is known.
TEST(AttentionKernels, HaveTheirRates) {
  Cluster cluster = catalog_cluster("h100-ndr");
  const double fastest = cluster.device.transformer->attention.value.value();
  double before = 0;
  for (const auto& [kernel, name] : attention_kernels) {
    take_attention_kernel(kernel, cluster);
    EXPECT_GT(cluster.device.transformer->attention.value.value(), before) << name;
    before = cluster.device.transformer->attention.value.value();
  }
  EXPECT_EQ(before, fastest);
  Cluster ampere = catalog_cluster("dgx-a100-hdr");
  EXPECT_EQ(test::error_of([&] { take_attention_kernel(AttentionKernel::flash_3, ampere); }),
            "how fast flash-3 is on a100-80g is not known; leave it out");
  Cluster pascal = catalog_cluster("jizhi-p40");
  EXPECT_EQ(test::error_of([&] { take_attention_kernel(AttentionKernel::flash_1, pascal); }),
            "how fast flash-1 is on p40 is not known; leave it out");
}

}  // namespace
}  // namespace paceline::models
