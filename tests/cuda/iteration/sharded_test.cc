// Sharded plans over NCCL, in every order in which operations of streams may run.
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/cuda/iteration/rig.h"

namespace paceline::test {
namespace {

// Two ranks sum in one order, so that the bits are those of replicated training.
TEST(ShardedIterations, OfZero1OverNcclAreReplicatedToTheBit) {
  if (!cuda_on_host::nccl::present()) GTEST_SKIP() << "needs two devices, which the doubles have";
  for (const NumberType wire : {NumberType::fp32, NumberType::fp16})
    for (const bool replay : {false, true})
      for (const auto order :
           {cuda_on_host::Order::eager, cuda_on_host::Order::random, cuda_on_host::Order::latest}) {
        const auto weights_of = [&](const std::string& strategy) {
          begin(order, 1);
          auto outcome = Iterations({.setting = {.name = "sharded",
                                                 .wire = wire,
                                                 .loss_scale = 128,
                                                 .strategy = strategy},
                                     .replay = replay})
                             .run();
          expect_clean();
          return outcome.weights;
        };
        SCOPED_TRACE(std::string(models::name(wire)) + (replay ? ", graphs" : ""));
        EXPECT_EQ(weights_of("zero1"), weights_of("fused-ring"));
      }
}

}  // namespace
}  // namespace paceline::test
