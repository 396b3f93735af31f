// The time of every bucket of a plan: engines and times that were computed once are kept.
//
// Holds state for one prediction; use one for each thread.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/step_engine.h"

namespace paceline::simulator {

class CollectiveTimer {
 public:
  explicit CollectiveTimer(const CommunicationCost& cost) : cost_(cost) {}

  // Completion time of an all-reduce of `bytes`, all ranks ready at once.
  [[nodiscard]] Seconds time(const models::PlannedSchedule& schedule, Bytes bytes);
  [[nodiscard]] const CommunicationCost& cost() const { return cost_; }

 private:
  struct Prepared {
    models::PlannedSchedule schedule;
    StepEngine engine;
    std::unordered_map<double, Seconds> times;  // by bytes
  };
  CommunicationCost cost_;
  std::vector<std::unique_ptr<Prepared>> prepared_;
};

}  // namespace paceline::simulator
