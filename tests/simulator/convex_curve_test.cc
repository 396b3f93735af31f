#include "simulator/engine/convex_curve.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "simulator/engine/step_engine.h"
#include "tests/support/generators.h"

namespace paceline::simulator {
namespace {

RC_GTEST_PROP(ConvexCurve, IsTheFunctionToItsAccuracy, ()) {
  std::vector<std::pair<double, double>> lines;
  for (int i = test::drawn(1, 6); i > 0; --i)
    lines.emplace_back(1e-6 + test::drawn_up_to(1e-3), test::drawn_up_to(1e-8));
  const auto f = [&](double x) {
    double most = 0;
    for (const auto& [a, b] : lines) most = std::max(most, a + b * x);
    return most;
  };
  ConvexCurve curve;
  for (int i = 0; i < 200; ++i) {
    const double x = test::drawn_up_to(1e8);
    RC_ASSERT(std::fabs(curve.at(x, f) - f(x)) <= 2e-9 * f(x));
  }
  // At most a few evaluations near each of the corners, and at either end.
  RC_ASSERT(curve.evaluations() <= 200);
}

TEST(ConvexCurve, EvaluatesAStraightLineThreeTimes) {
  ConvexCurve curve;
  int evaluations = 0;
  const auto f = [&](double x) {
    ++evaluations;
    return 3 + 2 * x;
  };
  for (const double x : {0.0, 100.0, 50.0, 25.0, 75.0, 12.5, 99.0, 0.5}) {
    EXPECT_NEAR(curve.at(x, f), 3 + 2 * x, 1e-9 * (3 + 2 * x));
  }
  EXPECT_EQ(evaluations, 3);
}

// What lets the timer of buckets use it: the step engine's time is convex in the size.
RC_GTEST_PROP(ConvexCurve, TheStepEnginesTimeIsConvexInTheSize, ()) {
  const models::Schedule schedule = *test::all_reduce_schedules(24);
  const StepEngine engine(schedule, *test::communication_costs(schedule.ranks()));
  const double a = test::drawn_up_to(1e7);
  const double b = a + 1 + test::drawn_up_to(1e7);
  const double share = test::drawn(0, 16) / 16.0;
  const auto time = [&](double size) { return engine.time(Bytes{size}).value(); };
  const double chord = (1 - share) * time(a) + share * time(b);
  RC_ASSERT(time((1 - share) * a + share * b) <= chord * (1 + 1e-12));
}

}  // namespace
}  // namespace paceline::simulator
