// Tests: tests/simulator/monotony_test.cc.
#include "simulator/iteration/better_links.h"

#include "models/plan/strategy.h"

namespace paceline::simulator {

std::string why_better_links_may_slow(const models::Plan& plan, const TimingMethod& method,
                                      bool by_library_model) {
  if (plan.ranks == 1) return "";
  if (by_library_model) return "its library takes what its own model prefers";
  if (models::strategy(plan.strategy).other) return "its system makes buckets by rules of its own";
  if (method.beside == Beside::other_buckets) return "its buckets travel together";
  if (method.beside == Beside::buckets_behind) return "its ranks start buckets at their own times";
  if (plan.overlap == models::Overlap::priority) return "its buckets overtake each other";
  if (plan.overlap == models::Overlap::double_buffered)
    return "its thresholds are those of the shortest communication";
  return "";
}

}  // namespace paceline::simulator
