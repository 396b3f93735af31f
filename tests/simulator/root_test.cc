#include "simulator/cost/root.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline::simulator {
namespace {

TEST(Root, IsWhereTheFunctionIsZero) {
  for (const double at : {-2.5, -1e-3, 0.1, 0.7, 3.9}) {
    EXPECT_NEAR(root([&](double x) { return x - at; }, -4, 4, 1e-12), at, 1e-9);
    EXPECT_NEAR(root([&](double x) { return std::exp(x) - std::exp(at); }, -4, 4, 1e-12), at, 1e-9);
    EXPECT_NEAR(root([&](double x) { return std::cbrt(x - at); }, -4, 4, 1e-12), at, 1e-9);
  }
}

TEST(Root, IsAnEndThatIsZero) {
  EXPECT_EQ(root([](double x) { return x - 1; }, 1, 2, 1e-12), 1);
  EXPECT_EQ(root([](double x) { return x - 2; }, 1, 2, 1e-12), 2);
}

TEST(Root, IsTheJumpWhereTheFunctionJumpsOverZero) {
  EXPECT_NEAR(root([](double x) { return x < 1.25 ? -1.0 : 1.0; }, 0.5, 2, 1e-12), 1.25, 1e-6);
}

}  // namespace
}  // namespace paceline::simulator
