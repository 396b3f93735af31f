// The time of every bucket of a plan: engines and times that were computed once are kept.
//
// Holds state for one prediction; use one for each thread.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/engine_kind.h"
#include "simulator/engine/step_engine.h"

namespace paceline::simulator {

class CollectiveTimer {
 public:
  explicit CollectiveTimer(const CommunicationCost& cost, EngineKind kind = EngineKind::step)
      : cost_(cost), kind_(kind) {}

  // Completion time of an all-reduce of `bytes`, all ranks ready at once, nothing else in flight.
  // Throws InputError where the schedule is too large for the engine, UnavailableError where that
  // is not built in.
  [[nodiscard]] Seconds time(const models::PlannedSchedule& schedule, Bytes bytes);
  // The engine that times it: never `automatic`.
  [[nodiscard]] EngineKind engine(const models::PlannedSchedule& schedule);
  [[nodiscard]] EngineKind kind() const { return kind_; }
  [[nodiscard]] const CommunicationCost& cost() const { return cost_; }

 private:
  struct Prepared {
    models::PlannedSchedule schedule;
    EngineKind kind = EngineKind::step;
    std::optional<StepEngine> step;  // one of the two
    std::unique_ptr<NetworkEngine> sharing;
    std::unordered_map<double, Seconds> times;  // by bytes
  };
  Prepared& prepared(const models::PlannedSchedule& schedule);

  CommunicationCost cost_;
  EngineKind kind_;
  std::vector<std::unique_ptr<Prepared>> prepared_;
};

}  // namespace paceline::simulator
