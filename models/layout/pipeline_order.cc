// Tests: tests/models/layout_test.cc.
#include "models/layout/pipeline_order.h"

#include <algorithm>

namespace paceline::models {
namespace {

// The n-th forward, or backward pass of a stage: groups of as many batches as stages go through chunk after
// chunk; backward passes from the last chunk to the first.
StagePass nth(const Layout& layout, bool is_backward, int n) {
  const int p = layout.pipeline;
  const int v = layout.chunks;
  if (v == 1) return {is_backward, 0, n};
  const int in_group = n % (p * v);
  const int chunk = in_group / p;
  return {is_backward, is_backward ? v - 1 - chunk : chunk, n / (p * v) * p + in_group % p};
}

int warm_up(const Layout& layout, int stage, int passes) {
  if (layout.schedule == PipelineSchedule::gpipe) return passes;
  const int behind = layout.pipeline - stage - 1;
  const int ahead =
      layout.chunks == 1 ? behind : 2 * behind + (layout.chunks - 1) * layout.pipeline;
  return std::min(ahead, passes);
}

}  // namespace

std::vector<StagePass> stage_order(const Layout& layout, int stage, int batches) {
  const int passes = batches * layout.chunks;
  const int ahead = warm_up(layout, stage, passes);
  std::vector<StagePass> order;
  for (int i = 0; i < ahead; ++i) order.push_back(nth(layout, false, i));
  for (int i = ahead; i < passes; ++i) {
    order.push_back(nth(layout, false, i));
    order.push_back(nth(layout, true, i - ahead));
  }
  for (int i = passes - ahead; i < passes; ++i) order.push_back(nth(layout, true, i));
  return order;
}

int most_in_flight(const Layout& layout, int stage, int batches) {
  int kept = 0;
  int most = 0;
  for (const StagePass& pass : stage_order(layout, stage, batches)) {
    kept += pass.is_backward ? -1 : 1;
    most = std::max(most, kept);
  }
  return most;
}

}  // namespace paceline::models
