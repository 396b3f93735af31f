// Optimizers: what they keep, against counts by hand and published figures.
#include "models/network/optimizer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/network/network.h"
#include "models/network/zoo.h"

namespace paceline::models {
namespace {

NetworkWork matrix(std::int64_t rows, std::int64_t columns, const char* name = "h0.out") {
  NetworkBuilder net("one", Shape::sequence(2, columns));
  net.add(name, Linear{rows, false}, {"input"});
  return work(net.build());
}

// Whatever the network, a number that is stated is one of each parameter, and moves as the update of the paper.
RC_GTEST_PROP(OptimizerCosts, OfStatedNumbersAreOnesOfEachParameter, ()) {
  const NetworkWork network = matrix(*rc::gen::inRange(1, 300), *rc::gen::inRange(1, 300));
  const int states = *rc::gen::inRange(0, 16);
  const auto n = static_cast<double>(network.parameters());
  const OptimizerCost cost = optimizer_cost(network, states);
  RC_ASSERT(cost.kept == states * n);
  RC_ASSERT(cost.bytes == (12 + 8 * states) * n);
  for (const auto& [kind, as] : {std::pair{OptimizerKind::sgd, 0},
                                 {OptimizerKind::momentum, 1},
                                 {OptimizerKind::adam, 2},
                                 {OptimizerKind::adamw, 2},
                                 {OptimizerKind::lamb, 2}})
    RC_ASSERT(optimizer_cost(network, kind).kept == as * n);
}

TEST(OptimizerCosts, OfMatricesByHand) {
  const NetworkWork network = matrix(300, 200);
  const OptimizerCost factored = optimizer_cost(network, OptimizerKind::adafactor);
  EXPECT_EQ(factored.kept, 500);
  EXPECT_EQ(factored.bytes, 4 * (3 * 60'000 + 2 * 500 + 2 * 60'000));
  const OptimizerCost muon = optimizer_cost(network, OptimizerKind::muon);
  EXPECT_EQ(muon.kept, 60'000);
  EXPECT_EQ(muon.flops, 5.0 * (4 * 200 * 200 * 300 + 2 * 200 * 200 * 200));
  // Outside blocks muon is AdamW.
  EXPECT_EQ(optimizer_cost(matrix(300, 200, "logits"), OptimizerKind::muon).kept, 120'000);
  EXPECT_EQ(optimizer_cost(network, OptimizerKind::adam_8bit).kept, 60'000 * (0.5 + 2.0 / 256));
  EXPECT_EQ(optimizer_cost(matrix(10, 10), OptimizerKind::adam_8bit).kept, 200);
}

// Liu 2025 (arXiv 2502.16982), 2.3: five steps cost less than a hundredth of a training step's FLOPs at batches of
// millions of tokens.
TEST(OptimizerCosts, MuonIsFewOfTheFlopsOfAStep) {
  const NetworkWork llama = work(zoo_network("llama-3-8b"));
  const double step = static_cast<double>(llama.forward_flops() + llama.backward_flops()) * 512;
  EXPECT_LT(optimizer_cost(llama, OptimizerKind::muon).flops, 0.01 * step);
  EXPECT_GT(optimizer_cost(llama, OptimizerKind::muon).flops, 0.0001 * step);
}

TEST(OptimizerCosts, ExpertsAreMatricesEach) {
  const NetworkWork mixtral = work(zoo_network("mixtral-8x7b"));
  double by_hand = 0;
  for (const LayerWork& layer : mixtral.layers)
    for (const ParameterTensor& tensor : layer.parameters) {
      if (tensor.shape.size() == 3)
        by_hand += static_cast<double>(tensor.shape[0] * (tensor.shape[1] + tensor.shape[2]));
      else if (tensor.shape.size() == 2)
        by_hand += static_cast<double>(tensor.shape[0] + tensor.shape[1]);
      else
        by_hand += static_cast<double>(tensor.elements);
    }
  EXPECT_EQ(optimizer_cost(mixtral, OptimizerKind::adafactor).kept, by_hand);
}

}  // namespace
}  // namespace paceline::models
