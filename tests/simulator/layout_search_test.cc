// The search over layouts: its lower bound, and its best against all candidates.
#include "simulator/prediction/layout_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "simulator/prediction/prediction.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

using ::testing::HasSubstr;

struct Asked {
  std::string network = "gpt2-medium";
  std::string cluster = "h100-ndr";
  int ranks = 16;
  std::int64_t global_batch = 32;
  bool fits_memory = true;

  models::NetworkWork work = models::work(models::zoo_network(network));
  models::Cluster on = models::catalog_cluster(cluster);

  [[nodiscard]] PredictionRequest job(const PredictionOptions& options = {}) const {
    return {options, work, on, nullptr, ranks, models::WireType::fp16, Bytes{0}};
  }
  [[nodiscard]] FoundLayouts found() const {
    const PredictionRequest asked = job();
    return search_layouts({.job = asked, .global_batch = global_batch, .fits_memory = fits_memory});
  }
};

TEST(LayoutSearch, NoIterationIsShorterThanItsBound) {
  for (const char* network : {"gpt2-medium", "llama-3-8b"}) {
    const FoundLayouts found = Asked{.network = network, .fits_memory = false}.found();
    ASSERT_FALSE(found.timed.empty());
    EXPECT_TRUE(found.is_proven);
    for (const LayoutChoice& choice : found.timed)
      EXPECT_LE(choice.least.value(), choice.iteration->value() * (1 + 1e-9));
    EXPECT_GE(found.least_left.value(), found.timed.front().iteration->value() * (1 - 1e-9));
  }
}

// Candidates that the search did not time are no faster than its best, whatever they are.
TEST(LayoutSearch, NothingElseIsFaster) {
  const Asked asked{.fits_memory = false};
  const double best = asked.found().timed.front().iteration->value();
  int tried = 0;
  for (const int tensor : {1, 2, 4, 8})
    for (const int pipeline : {1, 2, 4})
      for (const int batch : {1, 2})
        for (const char* strategy : {"nccl", "zero1", "fsdp"}) {
          PredictionOptions options;
          options.layout = {.tensor = tensor, .pipeline = pipeline};
          const int groups = asked.ranks / options.layout.ranks_of_sample();
          if (groups == 0 || asked.global_batch % (groups * batch) != 0) continue;
          options.batch_per_rank = batch;
          options.accumulate = static_cast<int>(asked.global_batch / (groups * batch));
          const Seconds time = Predictor(asked.job(options)).iteration(models::strategy(strategy));
          EXPECT_GE(time.value(), best * (1 - 1e-9))
              << tensor << " " << pipeline << " " << batch << " " << strategy;
          ++tried;
        }
  EXPECT_GT(tried, 50);
}

// The search times only what fits, and leaves out only what does not. 70 billion parameters take 18 bytes each.
TEST(LayoutSearch, KeepsToTheMemory) {
  const Asked asked{.network = "llama-3-70b", .ranks = 64, .global_batch = 64};
  const FoundLayouts found = asked.found();
  const Bytes capacity = asked.on.device.memory.value;
  for (const LayoutChoice& choice : found.timed) EXPECT_LE(choice.memory, capacity);
  for (const LayoutChoice& choice : found.too_large) EXPECT_GT(choice.memory, capacity);
  EXPECT_FALSE(found.too_large.empty());
}

TEST(LayoutSearch, SaysWhatDoesNotFit) {
  EXPECT_THAT(test::error_of([] {
                (void)Asked{.network = "llama-3.1-405b", .ranks = 8, .global_batch = 8}.found();
              }),
              HasSubstr("no layout of 8 ranks fits"));
  EXPECT_THAT(test::error_of([] {
                (void)Asked{.network = "resnet50", .ranks = 16, .global_batch = 17}.found();
              }),
              HasSubstr("--global-batch"));
}

// A network without attention has data parallelism alone.
TEST(LayoutSearch, ImagesStayDataParallel) {
  const FoundLayouts found = Asked{.network = "resnet50", .global_batch = 512}.found();
  for (const LayoutChoice& choice : found.timed)
    EXPECT_TRUE(choice.options.layout.is_data_parallel());
}

}  // namespace
}  // namespace paceline::simulator
