// Schedules that were prepared for the engines, kept for whoever times them next: a prediction reads
// the figures of a cluster three times, and times with the step engine and with another.
//
// Not thread-safe; use one for each thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {

struct FlowPrograms;  // flow_program.h
class Pipeline;       // step_program.h, as is the next
struct StepProgram;

class PreparedSchedules {
 public:
  // The same for all `routes` that are alike. Throw TooManyMessages as make_step_program(),
  // make_flow_programs() and shares_links() do.
  [[nodiscard]] std::shared_ptr<const StepProgram> step(const models::PlannedSchedule& schedule,
                                                        const Routes& routes,
                                                        std::int64_t most_messages);
  [[nodiscard]] std::shared_ptr<const FlowPrograms> flow(const models::PlannedSchedule& schedule,
                                                         const Routes& routes);
  [[nodiscard]] bool shares_links(const models::PlannedSchedule& schedule, const Routes& routes);

 private:
  struct Entry {
    models::PlannedSchedule schedule;
    Routes routes;
    std::shared_ptr<const StepProgram> step;
    std::int64_t most_messages = 0;  // that `step` was allowed
    std::shared_ptr<const FlowPrograms> flow;
    std::optional<bool> shares_links;
    std::shared_ptr<Pipeline> pipeline;
  };
  std::shared_ptr<Pipeline> pipeline(const Entry& wanted, const models::Schedule& inner,
                                     std::int64_t most_messages);
  Entry& entry(const models::PlannedSchedule& schedule, const Routes& routes);

  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace paceline::simulator
