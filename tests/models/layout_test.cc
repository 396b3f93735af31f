// Layouts: the work of a rank against counts of the papers, stages, and the orders of pipelines.
#include "models/layout/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "models/base/to_size.h"
#include "models/layout/pipeline_order.h"
#include "models/layout/rank_work.h"
#include "models/layout/stages.h"
#include "models/network/decoder.h"
#include "models/network/zoo.h"
#include "tests/support/error_of.h"
#include "tests/support/generators.h"

namespace paceline::models {
namespace {

NetworkWork zoo_work(const std::string& name) {
  return work(zoo_network(name));
}

// How often each collective runs at the outputs of a block's layers, in a direction.
std::map<Collective, int> counted(const RankWork& rank, std::string_view block, bool is_forward) {
  std::map<Collective, int> counts;
  for (std::size_t i = 0; i < rank.exchanges.size(); ++i) {
    if (block_of(rank.network.layers[i].name) != block) continue;
    for (const Exchange& exchange : rank.exchanges[i]) {
      const auto& collective = is_forward ? exchange.forward : exchange.backward;
      if (collective) ++counts[*collective];
    }
  }
  return counts;
}

using C = Collective;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// Megatron-LM (arXiv 1909.08053), 3: two all-reduces of a block in each direction. The embedding's and the
// last block's are counted at their writers.
TEST(RankWork, TensorParallelismIsTwoAllReducesOfABlock) {
  for (const char* name : {"gpt2-xl", "llama-2-7b", "llama-3-8b"}) {
    Layout layout{.tensor = name == std::string("gpt2-xl") ? 5 : 4, .sequence_parallel = false};
    const RankWork rank = rank_work(zoo_work(name), layout);
    EXPECT_THAT(counted(rank, "h1", true), ElementsAre(Pair(C::all_reduce, 2))) << name;
    EXPECT_THAT(counted(rank, "h1", false), ElementsAre(Pair(C::all_reduce, 2))) << name;
    layout.sequence_parallel = true;
    const RankWork by_elements = rank_work(zoo_work(name), layout);
    for (const bool is_forward : {true, false})
      EXPECT_THAT(counted(by_elements, "h1", is_forward),
                  ElementsAre(Pair(C::reduce_scatter, 2), Pair(C::all_gather, 2)))
          << name;
  }
}

// A parallel block has half as many.
TEST(RankWork, AParallelBlockExchangesOnce) {
  const NetworkWork network = work(decoder({.name = "parallel",
                                            .blocks = 3,
                                            .features = 64,
                                            .heads = 8,
                                            .key_value_heads = 8,
                                            .head_features = 8,
                                            .inner = 256,
                                            .vocabulary = 512,
                                            .sequence = 16,
                                            .is_parallel = true}));
  const RankWork rank = rank_work(network, {.tensor = 8, .sequence_parallel = false});
  EXPECT_THAT(counted(rank, "h1", true), ElementsAre(Pair(C::all_reduce, 2)));
}

// With sequence parallelism all that a block stores, and all its work, are shared out; the weights of norms
// are not.
TEST(RankWork, SharesAddUp) {
  const NetworkWork whole = zoo_work("llama-3-8b");
  const RankWork rank = rank_work(whole, {.tensor = 8});
  std::int64_t norms = 0;
  for (std::size_t i = 0; i < whole.layers.size(); ++i) {
    EXPECT_EQ(8 * rank.network.layers[i].stored, whole.layers[i].stored) << whole.layers[i].name;
    EXPECT_EQ(8 * rank.network.layers[i].forward_flops, whole.layers[i].forward_flops);
    if (whole.layers[i].kind == "layer_norm") norms += whole.layers[i].parameter_elements();
  }
  EXPECT_EQ(8 * (rank.network.parameters() - norms), whole.parameters() - norms);
  std::int64_t gradients = 0;
  for (const Gradient& gradient : rank.network.gradients) gradients += gradient.elements;
  EXPECT_EQ(gradients, rank.network.parameters());
}

// Without it, 10 h + 24 h / t bytes of a token remain of GPT's 34 h with dropout; here without: 8 h
// of norms' inputs and outputs, (24 h + 4 a) / t of the rest (arXiv 2205.05198, 4.2.1).
TEST(RankWork, WithoutSequenceParallelismNormsStayWhole) {
  const NetworkWork whole = zoo_work("gpt3-175b");
  const RankWork rank = rank_work(whole, {.tensor = 8, .sequence_parallel = false});
  std::int64_t stored = 0;
  for (const LayerWork& layer : rank.network.layers)
    if (block_of(layer.name) == "h1") stored += layer.stored;
  constexpr std::int64_t h = 12288;
  constexpr std::int64_t heads = 96;
  EXPECT_EQ(2 * stored, whole.sequence * (8 * h + (24 * h + 2 * heads) / 8));
}

// Heads of keys and values that are fewer than ranks are on several of them.
TEST(RankWork, FewHeadsOfKeysAreRepeated) {
  const RankWork rank = rank_work(zoo_work("llama-3-8b"), {.tensor = 16});
  const auto qkv = std::ranges::find(rank.network.layers, "h0.attn.qkv", &LayerWork::name);
  EXPECT_EQ(qkv->parameters.front().shape.front(), (32 / 16 + 2) * 128);
  EXPECT_THAT(test::error_of([] { (void)rank_work(zoo_work("llama-3-8b"), {.tensor = 3}); }),
              HasSubstr("--tensor"));
  EXPECT_THAT(test::error_of([] { (void)rank_work(zoo_work("resnet50"), {.tensor = 2}); }),
              HasSubstr("no attention"));
}

// Keys and values of 8 heads of 128 features, over the whole sequence.
TEST(RankWork, ContextSplitsElementsAndSendsKeysAndValues) {
  const NetworkWork whole = zoo_work("llama-3-8b");
  const RankWork rank = rank_work(whole, {.context = 4});
  EXPECT_EQ(rank.network.parameters(), whole.parameters());
  EXPECT_EQ(4 * rank.network.forward_flops(), whole.forward_flops());
  const auto qkv = std::ranges::find(rank.network.layers, "h0.attn.qkv", &LayerWork::name);
  const auto& exchanges = rank.exchanges[to_size(qkv - rank.network.layers.begin())];
  ASSERT_EQ(exchanges.size(), 1);
  EXPECT_EQ(exchanges.front().elements, 2 * 8 * 128 * whole.sequence);
}

// 126 blocks on 16 stages: 8 each, and 7 on both ends (Llama 3, arXiv 2407.21783, 3.3.2).
TEST(Stages, BothEndsHaveFewerBlocks) {
  const NetworkWork network = zoo_work("llama-3.1-405b");
  const Stages cut = stages_of(network, {.pipeline = 16});
  std::map<int, int> blocks;
  for (std::size_t i = 0; i < network.layers.size(); ++i)
    if (network.layers[i].name.ends_with(".norm1")) ++blocks[cut.stage_of(static_cast<int>(i))];
  for (const auto& [stage, count] : blocks) EXPECT_EQ(count, stage % 15 == 0 ? 7 : 8) << stage;
  EXPECT_EQ(cut.sent.front(), 16384 * network.sequence);
  EXPECT_EQ(cut.sent.back(), 0);
  EXPECT_THAT(test::error_of([&] { (void)stages_of(network, {.pipeline = 129}); }),
              HasSubstr("126 blocks for 129"));
}

// NVIDIA's layouts count what is ahead of the blocks and behind them as a layer each.
TEST(Stages, TheFirstAndTheLastMayHaveNoBlock) {
  const NetworkWork network = zoo_work("llama-3.1-405b");
  const Stages cut = stages_of(network, {.pipeline = 16, .chunks = 8});
  std::map<int, int> blocks;
  for (std::size_t i = 0; i < network.layers.size(); ++i)
    if (network.layers[i].name.ends_with(".norm1")) ++blocks[cut.chunk_of[i]];
  EXPECT_EQ(blocks.size(), 126);
  EXPECT_EQ(blocks.begin()->first, 1);
  EXPECT_EQ(blocks.rbegin()->first, 126);
  EXPECT_EQ(cut.chunk_of.front(), 0);
  EXPECT_EQ(cut.chunk_of.back(), 127);
  for (int chunk = 0; chunk < 127; ++chunk)
    EXPECT_EQ(cut.sent[to_size(chunk)], 16384 * network.sequence) << chunk;
}

struct Drawn {
  Layout layout;
  int batches = 1;
};

Drawn drawn_pipeline() {
  Drawn drawn;
  drawn.layout.pipeline = test::drawn(1, 6);
  drawn.layout.chunks = test::drawn(1, 3);
  drawn.batches = drawn.layout.pipeline * test::drawn(1, 4);
  if (drawn.layout.chunks == 1 || drawn.layout.pipeline == 1) {
    drawn.layout.chunks = 1;
    drawn.batches = test::drawn(1, 12);
    if (test::drawn(0, 1) == 1) drawn.layout.schedule = PipelineSchedule::gpipe;
  }
  return drawn;
}

// Runs all stages, each in its order, where a pass takes a unit of time, and a backward pass two. Returns when
// the last has ended; nothing where stages wait for each other for ever.
std::optional<int> run(const Drawn& job) {
  const int p = job.layout.pipeline;
  const int chunks = p * job.layout.chunks;
  std::vector<std::vector<StagePass>> orders;
  for (int stage = 0; stage < p; ++stage)
    orders.push_back(stage_order(job.layout, stage, job.batches));
  std::map<std::tuple<bool, int, int>, int> done;
  std::vector<std::size_t> next(to_size(p));
  std::vector<int> free(to_size(p));
  bool goes_on = true;
  while (goes_on) {
    goes_on = false;
    for (int stage = 0; stage < p; ++stage) {
      const auto s = to_size(stage);
      while (next[s] < orders[s].size()) {
        const StagePass pass = orders[s][next[s]];
        const int chunk = pass.chunk * p + stage;
        const bool is_first = pass.is_backward ? chunk == chunks - 1 : chunk == 0;
        const auto before = done.find(
            pass.is_backward && is_first
                ? std::tuple{false, chunk, pass.batch}
                : std::tuple{pass.is_backward, chunk + (pass.is_backward ? 1 : -1), pass.batch});
        if ((!is_first || pass.is_backward) && before == done.end()) break;
        const int ready = is_first && !pass.is_backward ? 0 : before->second;
        free[s] = std::max(free[s], ready) + (pass.is_backward ? 2 : 1);
        done[{pass.is_backward, chunk, pass.batch}] = free[s];
        ++next[s];
        goes_on = true;
      }
    }
  }
  if (std::ssize(done) != 2 * chunks * job.batches) return std::nullopt;
  return *std::ranges::max_element(free);
}

RC_GTEST_PROP(PipelineOrder, EveryPassRunsOnceAndTheBubbleIsThePapers, ()) {
  const Drawn job = drawn_pipeline();
  const std::optional<int> time = run(job);
  RC_ASSERT(time.has_value());
  RC_ASSERT(*time == 3 * (job.batches * job.layout.chunks + job.layout.pipeline - 1));
}

// min(m, p - i) batches of 1F1B, all of GPipe, p (1 + (p - 1) / (p v)) of a stage's v chunks on the first of
// interleaved stages (shared/reference/sharded.md, 2.4).
TEST(PipelineOrder, ActivationsInFlight) {
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(most_in_flight({.pipeline = 4}, stage, 16), 4 - stage);
    EXPECT_EQ(most_in_flight({.pipeline = 4, .schedule = PipelineSchedule::gpipe}, stage, 16), 16);
  }
  EXPECT_EQ(most_in_flight({.pipeline = 4, .chunks = 2}, 0, 16), 4 * 2 + 3);
}

TEST(Layout, SaysWhatDoesNotFit) {
  const auto error = [](const Layout& layout, int ranks, int batches) {
    return test::error_of([&] { check_layout(layout, ranks, batches); });
  };
  EXPECT_THAT(error({.tensor = 8}, 12, 1), HasSubstr("do not divide 12 ranks"));
  EXPECT_THAT(error({.chunks = 2}, 8, 8), HasSubstr("one stage"));
  EXPECT_THAT(error({.schedule = PipelineSchedule::gpipe}, 8, 8), HasSubstr("one stage"));
  EXPECT_THAT(error({.sequence_parallel = false}, 8, 8), HasSubstr("no tensor parallelism"));
  EXPECT_THAT(error({.pipeline = 4, .chunks = 2}, 8, 6), HasSubstr("multiple of 4"));
  EXPECT_EQ(described({.tensor = 8, .pipeline = 4}, 128),
            "tensor 8 with sequence parallelism, pipeline 4 (1f1b), data 4");
}

}  // namespace
}  // namespace paceline::models
