// K-FAC's blocks by hand, and who owns them.
#include "models/plan/k_fac.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/collective/catalogue.h"
#include "models/network/zoo.h"
#include "tests/support/error_of.h"
#include "tests/support/generators.h"

namespace paceline::models {
namespace {

FisherBlock block(int layer, std::int64_t inputs, std::int64_t outputs, std::int64_t positions,
                  std::int64_t gradients) {
  return {.layer = layer,
          .groups = 1,
          .inputs = inputs,
          .outputs = outputs,
          .positions = positions,
          .gradients = gradients};
}

int layer_named(const NetworkWork& network, const std::string& name) {
  const auto found = std::find_if(network.layers.begin(), network.layers.end(),
                                  [&](const LayerWork& layer) { return layer.name == name; });
  return static_cast<int>(found - network.layers.begin());
}

// 5 x 5 convolutions of 1 and 16 channels with a bias, over images of 28 x 28 and 14 x 14.
TEST(FisherBlocks, OfConvolutionsAndFullyConnectedLayersByHand) {
  const NetworkWork network = work(zoo_network("cnn-small"));
  const auto at = [&](const char* name) { return layer_named(network, name); };
  EXPECT_EQ(fisher_blocks(network),
            (std::vector<FisherBlock>{
                block(at("conv1"), 26, 16, 784, 416), block(at("conv2"), 401, 32, 196, 12832),
                block(at("fc1"), 1569, 128, 1, 200832), block(at("fc2"), 129, 10, 1, 1290)}));
}

TEST(FisherBlocks, OfGroupsAndOfABatchNorm) {
  NetworkBuilder net("toy", Shape::image(6, 8, 8));
  net.add("conv", Convolution{.channels = 10, .kernel = square(3), .padding = {1, 1}, .groups = 2});
  net.add("norm", BatchNorm{});
  net.add("fc", FullyConnected{.outputs = 5, .bias = false});
  net.add("loss", SoftmaxCrossEntropy{});
  const std::vector<FisherBlock> blocks = fisher_blocks(work(net.build()));
  ASSERT_EQ(blocks.size(), 3U);
  // 3 channels of 6 a group, 9 places of the kernel, and the bias.
  EXPECT_EQ(blocks[0].groups, 2);
  EXPECT_EQ(blocks[0].inputs, 28);
  EXPECT_EQ(blocks[0].outputs, 5);
  EXPECT_EQ(blocks[0].input_triangle(), 2 * 28 * 29 / 2);
  EXPECT_EQ(blocks[0].output_triangle(), 2 * 5 * 6 / 2);
  EXPECT_EQ(blocks[0].squares(), 2 * (28 * 28 + 5 * 5));
  EXPECT_DOUBLE_EQ(blocks[0].inversion_flops(), 2 * 7.0 / 3 * (28 * 28 * 28 + 125));
  EXPECT_DOUBLE_EQ(blocks[0].preconditioning_flops(), 2.0 * (2 * 5 * 5 * 28 + 2 * 5 * 28 * 28));
  // Both parameters of 10 channels in one matrix.
  EXPECT_EQ(blocks[1], block(1, 0, 20, 1, 20));
  EXPECT_EQ(blocks[1].input_triangle(), 0);
  EXPECT_EQ(blocks[1].output_triangle(), 210);
  EXPECT_DOUBLE_EQ(blocks[1].preconditioning_flops(), 2 * 400);
  EXPECT_EQ(blocks[2], block(2, 640, 5, 1, 3200));
}

// The authors count 107 layers in ResNet-50: 53 convolutions, as many batch norms, and the last one.
TEST(FisherBlocks, OfResNet50AreTheAuthors) {
  const NetworkWork network = work(zoo_network("resnet50"));
  const std::vector<FisherBlock> blocks = fisher_blocks(network);
  EXPECT_EQ(blocks.size(), 107U);
  std::int64_t gradients = 0;
  std::int64_t largest = 0;
  for (const FisherBlock& block : blocks) {
    gradients += block.gradients;
    largest = std::max(largest, block.inputs);
  }
  EXPECT_EQ(gradients, network.parameters());
  EXPECT_EQ(largest, 512 * 9);  // of the last 3 x 3 convolutions
  EXPECT_EQ(blocks.back().inputs, 2049);
  EXPECT_EQ(blocks.back().outputs, 1000);
}

// A sequence has a row for each element. What the paper does not have keeps its gradients.
TEST(FisherBlocks, OfATransformerAreThoseOfLinearLayers) {
  const NetworkWork network = work(zoo_network("bert-base"));
  std::int64_t gradients = 0;
  for (const FisherBlock& block : fisher_blocks(network)) {
    const LayerWork& layer = network.layers[static_cast<std::size_t>(block.layer)];
    gradients += block.gradients;
    EXPECT_EQ(block.outputs > 0, layer.kind == "linear") << layer.name;
    if (layer.kind == "linear" && layer.output.is_sequence) {
      EXPECT_EQ(block.positions, layer.output.height);
    }
  }
  EXPECT_EQ(gradients, network.parameters());
}

std::vector<FisherBlock> drawn_blocks() {
  std::vector<FisherBlock> blocks(static_cast<std::size_t>(test::drawn(0, 40)));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool has_factors = test::drawn(0, 4) > 0;
    blocks[i] = block(static_cast<int>(i), has_factors ? test::drawn(0, 300) : 0,
                      has_factors ? test::drawn(1, 300) : 0, 1, test::drawn(1, 10000));
  }
  return blocks;
}

double cost_of(const FisherBlock& block) {
  return block.outputs > 0 ? block.inversion_flops() + block.preconditioning_flops()
                           : static_cast<double>(block.gradients);
}

// A rank gets its last block when it has no more than the mean of the others: at most the mean and
// (1 - 1/p) of the largest block (Graham 1966).
RC_GTEST_PROP(Owners, BalancedAreAsEvenAsLongestFirstIs, ()) {
  const std::vector<FisherBlock> blocks = drawn_blocks();
  const int ranks = test::drawn(1, 50);
  const std::vector<int> owners = owners_of(blocks, ranks, ServerPlacement::balanced);
  RC_ASSERT(owners.size() == blocks.size());
  std::vector<double> load(static_cast<std::size_t>(ranks));
  double all = 0;
  double largest = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    RC_ASSERT(owners[i] >= 0 && owners[i] < ranks);
    load[static_cast<std::size_t>(owners[i])] += cost_of(blocks[i]);
    all += cost_of(blocks[i]);
    largest = std::max(largest, cost_of(blocks[i]));
  }
  const double most = *std::max_element(load.begin(), load.end());
  RC_ASSERT(most <= (all / ranks + (1 - 1.0 / ranks) * largest) * (1 + 1e-12));
  // Where there are as many ranks as blocks, each rank has at most one block.
  if (static_cast<std::size_t>(ranks) >= blocks.size()) RC_ASSERT(most == largest);
}

RC_GTEST_PROP(Owners, RoundRobinTakesTurns, ()) {
  const std::vector<FisherBlock> blocks = drawn_blocks();
  const int ranks = test::drawn(1, 50);
  const std::vector<int> owners = owners_of(blocks, ranks, ServerPlacement::round_robin);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    RC_ASSERT(owners[i] == static_cast<int>(i) % ranks);
}

TEST(Owners, AreAmongAtLeastOneRank) {
  EXPECT_EQ(test::error_of([] { (void)owners_of({}, 0, ServerPlacement::balanced); }),
            test::error_of([] { check_rank_count(0); }));
}

// A ring, piece by piece: the sum of rank r's part starts at the rank behind r and comes to it last, so
// that every rank but r sends it once.
RC_GTEST_PROP(MostSent, IsWhatTheBusiestRankOfARingSends, ()) {
  const int ranks = test::drawn(1, 12);
  std::vector<double> shares(static_cast<std::size_t>(test::drawn(0, 20)));
  std::vector<int> owners;
  for (double& share : shares) {
    share = test::drawn(0, 1000);
    owners.push_back(test::drawn(0, ranks - 1));
  }
  std::vector<double> sent(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < shares.size(); ++i) {
    for (int hop = 1; hop < ranks; ++hop)
      sent[static_cast<std::size_t>((owners[i] + hop) % ranks)] += shares[i];
  }
  RC_ASSERT(most_sent(shares, owners, ranks) == *std::max_element(sent.begin(), sent.end()));
}

}  // namespace
}  // namespace paceline::models
