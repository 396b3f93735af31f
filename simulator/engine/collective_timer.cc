// Tests: tests/simulator/prediction_test.cc.
#include "simulator/engine/collective_timer.h"

#include "simulator/engine/prepare.h"

namespace paceline::simulator {

CollectiveTimer::Prepared& CollectiveTimer::prepared(const models::PlannedSchedule& schedule) {
  for (const auto& known : prepared_) {
    if (known->schedule == schedule) return *known;
  }
  auto prepared = std::make_unique<Prepared>();
  prepared->schedule = schedule;
  const models::Schedule& s = schedule.schedule;
  const auto kind = [&] {
    if (kind_ == EngineKind::step) return EngineKind::step;
    const EngineKind sharing = network_engine_kind(kind_, {&s, 1}, cost_);
    const bool may_step = kind_ == EngineKind::automatic && sharing == EngineKind::flow;
    return may_step && !shares_links(s, cost_) ? EngineKind::step : sharing;
  };
  prepared->kind = kind();
  prepared_.push_back(std::move(prepared));
  return *prepared_.back();
}

Seconds CollectiveTimer::time(const models::PlannedSchedule& schedule, Bytes bytes) {
  Prepared& p = prepared(schedule);
  const models::Schedule& s = p.schedule.schedule;
  if (p.kind == EngineKind::step) {
    if (!p.step) p.step.emplace(s, cost_, Collapse::equal_positions, most_messages_);
    const auto by_engine = [&](double size) { return p.step->time(Bytes{size}).value(); };
    return Seconds{p.step_times.at(bytes.value(), by_engine)};
  }
  if (!p.sharing) p.sharing = make_network_engine(p.kind, {&s, 1}, cost_);
  const auto [entry, is_new] = p.times.try_emplace(bytes.value());
  if (is_new) entry->second = p.sharing->completion(0, bytes).last();
  return entry->second;
}

EngineKind CollectiveTimer::engine(const models::PlannedSchedule& schedule) {
  return prepared(schedule).kind;
}

}  // namespace paceline::simulator
