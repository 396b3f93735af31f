// Tests: tests/simulator/prediction_test.cc.
#include "simulator/engine/collective_timer.h"

namespace paceline::simulator {

Seconds CollectiveTimer::time(const models::PlannedSchedule& schedule, Bytes bytes) {
  Prepared* prepared = nullptr;
  for (const auto& known : prepared_) {
    const models::PlannedSchedule& s = known->schedule;
    if (s.algorithm == schedule.algorithm && s.options == schedule.options) prepared = known.get();
  }
  if (prepared == nullptr) {
    prepared_.push_back(
        std::make_unique<Prepared>(Prepared{schedule, StepEngine(schedule.schedule, cost_), {}}));
    prepared = prepared_.back().get();
  }
  const auto [entry, is_new] = prepared->times.try_emplace(bytes.value());
  if (is_new) entry->second = prepared->engine.time(bytes);
  return entry->second;
}

}  // namespace paceline::simulator
