// Tests: tests/simulator/prediction_test.cc.
#include "simulator/engine/collective_timer.h"

#include "simulator/engine/flow_engine.h"

namespace paceline::simulator {

CollectiveTimer::Prepared& CollectiveTimer::prepared(const models::PlannedSchedule& schedule) {
  for (const auto& known : prepared_) {
    if (known->schedule == schedule) return *known;
  }
  const models::Schedule& s = schedule.schedule();
  auto prepared = std::make_unique<Prepared>(schedule, Routes(cost_, s.ranks()));
  const auto kind = [&] {
    if (kind_ == EngineKind::step) return EngineKind::step;
    const EngineKind sharing = network_engine_kind(kind_, {&s, 1}, cost_);
    const bool may_step = kind_ == EngineKind::automatic && sharing == EngineKind::flow;
    return may_step && !schedules_->shares_links(schedule, prepared->routes) ? EngineKind::step
                                                                             : sharing;
  };
  prepared->kind = kind();
  prepared_.push_back(std::move(prepared));
  return *prepared_.back();
}

Seconds CollectiveTimer::time(const models::PlannedSchedule& schedule, Bytes bytes) {
  Prepared& p = prepared(schedule);
  const models::Schedule& s = p.schedule.schedule();
  if (p.kind == EngineKind::step) {
    if (!p.step)
      p.step.emplace(schedules_->step(p.schedule, p.routes, most_messages_), p.routes,
                     cost_.gamma.value());
    const auto by_engine = [&](double size) { return p.step->time(Bytes{size}).value(); };
    return Seconds{p.step_times.at(bytes.value(), by_engine)};
  }
  if (!p.sharing && p.kind == EngineKind::flow)
    p.sharing = std::make_unique<FlowEngine>(schedules_->flow(p.schedule, p.routes), p.routes,
                                             cost_.gamma.value());
  if (!p.sharing) p.sharing = make_network_engine(p.kind, {&s, 1}, cost_);
  const auto [entry, is_new] = p.times.try_emplace(bytes.value());
  if (is_new) entry->second = p.sharing->completion(0, bytes).last();
  return entry->second;
}

EngineKind CollectiveTimer::engine(const models::PlannedSchedule& schedule) {
  return prepared(schedule).kind;
}

}  // namespace paceline::simulator
