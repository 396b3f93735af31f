// The time of every bucket of a plan: engines and times that were computed once are kept. Times of
// the step engine are convex in the size, and most of them follow from those at few sizes
// (convex_curve.h, to 1e-9); the other engines are asked for each size.
//
// Holds state for one prediction; use one for each thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/convex_curve.h"
#include "simulator/engine/engine_kind.h"
#include "simulator/engine/prepared_schedules.h"
#include "simulator/engine/routes.h"
#include "simulator/engine/step_engine.h"

namespace paceline::simulator {

class CollectiveTimer {
 public:
  // The step engine prepares `most_messages` for a schedule at most. `schedules` are shared with
  // timers at other bounds of the figures, or with other engines.
  explicit CollectiveTimer(
      const CommunicationCost& cost, EngineKind kind = EngineKind::step,
      std::int64_t most_messages = most_prepared_messages,
      std::shared_ptr<PreparedSchedules> schedules = std::make_shared<PreparedSchedules>())
      : cost_(cost), kind_(kind), most_messages_(most_messages), schedules_(std::move(schedules)) {}

  // Completion time of an all-reduce of `bytes`, all ranks ready at once, nothing else in flight.
  // Throws InputError where the schedule is too large for the engine, UnavailableError where that
  // is not built in.
  [[nodiscard]] Seconds time(const models::PlannedSchedule& schedule, Bytes bytes);
  // The engine that times it: never `automatic`. Prepares nothing but what says whether links are
  // shared.
  [[nodiscard]] EngineKind engine(const models::PlannedSchedule& schedule);
  [[nodiscard]] EngineKind kind() const { return kind_; }
  [[nodiscard]] const CommunicationCost& cost() const { return cost_; }

 private:
  struct Prepared {
    Prepared(models::PlannedSchedule timed, Routes ways)
        : schedule(std::move(timed)), routes(std::move(ways)) {}
    models::PlannedSchedule schedule;
    Routes routes;
    EngineKind kind = EngineKind::step;
    std::optional<StepEngine> step;  // one of the two, once a time was asked for
    std::unique_ptr<NetworkEngine> sharing;
    ConvexCurve step_times;                     // seconds by bytes
    std::unordered_map<double, Seconds> times;  // by bytes, of the other engines
  };
  Prepared& prepared(const models::PlannedSchedule& schedule);

  CommunicationCost cost_;
  EngineKind kind_;
  std::int64_t most_messages_;
  std::shared_ptr<PreparedSchedules> schedules_;
  std::vector<std::unique_ptr<Prepared>> prepared_;
};

}  // namespace paceline::simulator
