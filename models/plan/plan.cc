// Tests: tests/models/strategy_test.cc.
#include "models/plan/plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/names.h"

namespace paceline::models {
namespace {

constexpr std::array<std::pair<Overlap, std::string_view>, 4> overlap_names = {
    {{Overlap::wait_free, "wait-free"},
     {Overlap::none, "none"},
     {Overlap::double_buffered, "double-buffered"},
     {Overlap::priority, "priority"}}};

}  // namespace

std::string_view name(Overlap overlap) {
  return name_in(overlap_names, overlap);
}

bool Plan::is_of_other_system() const {
  const auto is_plain = [this](const Bucket& bucket) {
    return bucket.wait == Seconds{0} && bucket.first_element == 0 &&
           (&bucket == &buckets.back() || (&bucket)[1].first_gradient != bucket.first_gradient);
  };
  const auto is_ours = [](const PlannedSchedule& schedule) {
    return schedule.has_steps() || schedule.library();
  };
  if (layout != Layout{} || !std::all_of(schedules.begin(), schedules.end(), is_ours)) return true;
  return dispatch != Dispatch{} || !std::all_of(buckets.begin(), buckets.end(), is_plain);
}

bool Plan::only_waits() const {
  if (!is_of_other_system()) return false;
  Plan plain = *this;
  plain.dispatch.cycle = Seconds{0};
  for (Bucket& bucket : plain.buckets) bucket.wait = Seconds{0};
  return !plain.is_of_other_system();
}

Overlap overlap_from_name(std::string_view text) {
  return value_named(overlap_names, "overlap policy", text);
}

}  // namespace paceline::models
