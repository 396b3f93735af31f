#include "models/network/recompute.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/network/zoo.h"

namespace paceline::models {
namespace {

// Bytes in BF16 that the blocks keep for each token.
double kept_bytes(const NetworkWork& network, const Recompute& recompute) {
  const Recomputation recomputation(network, recompute);
  double elements = 0;
  for (std::size_t i = 0; i < network.layers.size(); ++i)
    if (!block_of(network.layers[i].name).empty())
      elements += static_cast<double>(recomputation.kept(i));
  return 2 * elements / static_cast<double>(network.sequence);
}

// The FLOPs that are computed again, over those of a forward pass through the blocks.
double again(const NetworkWork& network, const Recompute& recompute) {
  const Recomputation recomputation(network, recompute);
  double all = 0;
  double repeated = 0;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    if (block_of(network.layers[i].name).empty()) continue;
    all += static_cast<double>(network.layers[i].forward_flops);
    repeated += recomputation.again(i) * static_cast<double>(network.layers[i].forward_flops);
  }
  return repeated / all;
}

constexpr Recompute selective{RecomputeKind::selective};
constexpr Recompute per_op{RecomputeKind::per_op};
constexpr Recompute every_second{RecomputeKind::full, 2};

// The bytes of a token in a block are counted by hand, for 32 heads, of which 8 have keys and values.
TEST(Recomputation, OfLlamaKeepsWhatTheFormulasSay) {
  const NetworkWork llama = work(zoo_network("llama-3-8b"));
  constexpr double h = 4096;
  constexpr double h_kv = 1024;
  constexpr double f = 14336;
  constexpr double statistics = 32 * 2;
  constexpr double blocks = 32;
  EXPECT_NEAR(kept_bytes(llama, Recompute::none), blocks * (12 * h + 4 * h_kv + 6 * f + statistics),
              2e-3 * blocks * 12 * h);
  EXPECT_NEAR(kept_bytes(llama, per_op), blocks * (8 * h + 2 * h_kv + 2 * f + statistics),
              2e-3 * blocks * 12 * h);
  EXPECT_NEAR(kept_bytes(llama, Recompute::full), blocks * 2 * h, 1);
  EXPECT_NEAR(kept_bytes(llama, every_second),
              (kept_bytes(llama, Recompute::none) + kept_bytes(llama, Recompute::full)) / 2,
              1e-3 * kept_bytes(llama, Recompute::none));
}

TEST(Recomputation, OfLlamaComputesAgainWhatItDropped) {
  const NetworkWork llama = work(zoo_network("llama-3-8b"));
  EXPECT_EQ(again(llama, Recompute::none), 0);
  EXPECT_EQ(again(llama, Recompute::full), 1);
  EXPECT_NEAR(again(llama, every_second), 0.5, 1e-9);
  // Products: keys (2 h h_kv), attention's own (2 h h) and up (2 h f), of 4 h h + 4 h h_kv + 6 h f and attention.
  constexpr double h = 4096;
  constexpr double h_kv = 1024;
  constexpr double f = 14336;
  const double products = 2 * h * (2 * h + 2 * h_kv + 3 * f);
  const double attention = 2 * h * 8192;
  EXPECT_NEAR(again(llama, per_op), 2 * h * (h_kv + h + f) / (products + attention), 0.02);
}

// A stage has some of the blocks, and its layers count their inputs in the whole network.
TEST(Recomputation, OfAStageIsThatOfItsBlocks) {
  for (const char* model : {"llama-3-8b", "gpt2-small", "deepseek-v3"}) {
    const NetworkWork whole = work(zoo_network(model));
    for (const Recompute& recompute : {selective, per_op, Recompute::full}) {
      const Recomputation expected(whole, recompute);
      const std::size_t first = whole.layers.size() / 2;
      std::size_t begin = first;  // of the next block
      while (block_of(whole.layers[begin].name) == block_of(whole.layers[first].name)) ++begin;
      NetworkWork stage = whole;
      stage.layers.erase(stage.layers.begin(),
                         stage.layers.begin() + static_cast<std::ptrdiff_t>(begin));
      const Recomputation found(stage, recompute);
      for (std::size_t i = 0; i < stage.layers.size(); ++i) {
        EXPECT_EQ(found.kept(i), expected.kept(begin + i)) << model << " " << stage.layers[i].name;
        EXPECT_EQ(found.again(i), expected.again(begin + i)) << model << " " << i;
      }
    }
  }
}

// Korthikanti 2022, 5: of s b h (34 + 5 a s / h) bytes, 34 are left. A mask is a whole element here, 6 a s / h with it.
TEST(Recomputation, SelectiveDropsTheScoresOfAttentionThatIsNotFused) {
  const NetworkWork bert = work(zoo_network("bert-large"));
  const double dropped = kept_bytes(bert, Recompute::none) - kept_bytes(bert, selective);
  EXPECT_GE(dropped, 24 * 2.0 * 16 * 512);
  EXPECT_LE(dropped, 24 * 6.0 * 16 * 512);
  EXPECT_GT(again(bert, selective), 0);
  EXPECT_LT(again(bert, selective), 0.2);
  const NetworkWork llama = work(zoo_network("llama-3-8b"));
  EXPECT_EQ(kept_bytes(llama, selective), kept_bytes(llama, Recompute::none));
  EXPECT_EQ(again(llama, selective), 0);
}

// Every transformer of the zoo keeps less and computes more.
TEST(Recomputation, TakesTimeInPlaceOfMemory) {
  int transformers = 0;
  for (const ZooEntry& entry : zoo()) {
    const NetworkWork network = work(entry.build());
    if (network.sequence == 0) continue;
    ++transformers;
    for (const Recompute& recompute : {selective, per_op, every_second, Recompute::full}) {
      EXPECT_LE(kept_bytes(network, recompute), kept_bytes(network, Recompute::none))
          << entry.name << " " << name(recompute);
      EXPECT_LE(again(network, recompute), again(network, Recompute::full)) << entry.name;
    }
    EXPECT_LE(kept_bytes(network, Recompute::full), kept_bytes(network, per_op)) << entry.name;
  }
  EXPECT_GT(transformers, 15);
}

TEST(Recomputation, IsReadFromItsName) {
  for (const Recompute& recompute :
       {Recompute::none, selective, per_op, Recompute::full, every_second})
    EXPECT_EQ(recompute_from_name(name(recompute)), recompute);
  EXPECT_EQ(recompute_from_name("full:1"), Recompute::full);
  for (const char* text : {"", "some", "full:", "full:0", "full:-1", "full:2.5", "full:2:2",
                           "full:1e9", "per-op:2", "FULL"})
    EXPECT_THROW(static_cast<void>(recompute_from_name(text)), InputError) << text;
}

}  // namespace
}  // namespace paceline::models
