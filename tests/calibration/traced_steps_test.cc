// Where a GPU's time goes in a trace: random kernels against a count of each microsecond.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "calibration/import/traced_steps.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

constexpr int step_us = 200;
constexpr int steps = 3;

KinetoTrace empty_trace() {
  KinetoTrace trace;
  for (int i = 0; i < steps; ++i)
    trace.annotations.push_back(
        {1.0 * i * step_us, 1.0 * (i + 1) * step_us, 0, "ProfilerStep#" + std::to_string(i)});
  return trace;
}

RC_GTEST_PROP(TracedSteps, PartsAreThoseOfEachMicrosecond, ()) {
  KinetoTrace trace = empty_trace();
  std::vector<std::vector<bool>> busy(3, std::vector<bool>(steps * step_us));
  for (int kind = 0; kind < 3; ++kind) {
    const int count = *rc::gen::inRange(kind == 0 ? 1 : 0, 12);
    for (int i = 0; i < count; ++i) {
      const int begin = *rc::gen::inRange(0, steps * step_us - 1);
      const int end = *rc::gen::inRange(begin + 1, steps * step_us + 1);
      const KinetoTrace::Kernel kernel{1.0 * begin, 1.0 * (end - begin)};
      if (kind == 0) trace.kernels.push_back(kernel);
      if (kind == 1) trace.communications.push_back(kernel);
      if (kind == 2)
        trace.annotations.push_back({1.0 * begin, 1.0 * end, 0, "enumerate(DataLoader)#next"});
      for (int at = begin; at < end; ++at) busy[to_size(kind)][to_size(at)] = true;
    }
  }
  int computes = 0;
  int exposed = 0;
  int sends = 0;
  int is_fed = 0;
  for (std::size_t at = 0; at < busy[0].size(); ++at) {
    computes += busy[0][at];
    sends += busy[1][at];
    exposed += !busy[0][at] && busy[1][at];
    is_fed += !busy[0][at] && !busy[1][at] && busy[2][at];
  }
  const auto found = traced_steps(trace);
  RC_ASSERT(found.has_value());
  const auto is = [](Seconds time, int us) {
    return std::abs(time.value() * steps * 1e6 - us) < 1e-6;
  };
  RC_ASSERT(found->steps == steps);
  RC_ASSERT(is(found->iteration, steps * step_us));
  RC_ASSERT(is(found->computation, computes));
  RC_ASSERT(is(found->communication, sends));
  RC_ASSERT(is(found->exposed, exposed));
  RC_ASSERT(is(found->input, is_fed));
  RC_ASSERT(is(found->idle, steps * step_us - computes - exposed - is_fed));
}

TEST(TracedSteps, AHostThatRunsAheadIsPartOfNoIteration) {
  KinetoTrace trace = empty_trace();
  trace.kernels.push_back({0, 2.0 * steps * step_us});
  EXPECT_DOUBLE_EQ(traced_steps(trace)->iteration.value(), 2e-6 * step_us);
}

TEST(TracedSteps, ATraceWithoutKernelsHasNone) {
  EXPECT_FALSE(traced_steps(empty_trace()));
}

}  // namespace
}  // namespace paceline::calibration
