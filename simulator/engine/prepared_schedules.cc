// Tests: tests/simulator/prepared_schedules_test.cc.
#include "simulator/engine/prepared_schedules.h"

#include "simulator/engine/prepare.h"

namespace paceline::simulator {

PreparedSchedules::Entry& PreparedSchedules::entry(const models::PlannedSchedule& schedule,
                                                   const Routes& routes) {
  for (const auto& known : entries_) {
    if (known->schedule == schedule && known->routes.is_alike(routes)) return *known;
  }
  entries_.push_back(std::make_unique<Entry>(Entry{schedule, routes, {}, 0, {}, {}}));
  return *entries_.back();
}

// What fitted into a larger limit is prepared again within a smaller one, which may refuse it.
std::shared_ptr<const StepProgram> PreparedSchedules::step(const models::PlannedSchedule& schedule,
                                                           const Routes& routes,
                                                           std::int64_t most_messages) {
  Entry& known = entry(schedule, routes);
  if (known.step == nullptr || known.most_messages > most_messages) {
    known.step = std::make_shared<StepProgram>(make_step_program(
        schedule.schedule, routes, Collapse::equal_positions, most_messages));
    known.most_messages = most_messages;
  }
  return known.step;
}

std::shared_ptr<const FlowPrograms> PreparedSchedules::flow(
    const models::PlannedSchedule& schedule, const Routes& routes) {
  Entry& known = entry(schedule, routes);
  if (known.flow == nullptr)
    known.flow =
        std::make_shared<FlowPrograms>(make_flow_programs({&schedule.schedule, 1}, routes));
  return known.flow;
}

bool PreparedSchedules::shares_links(const models::PlannedSchedule& schedule,
                                     const Routes& routes) {
  Entry& known = entry(schedule, routes);
  if (!known.shares_links) known.shares_links = simulator::shares_links(schedule.schedule, routes);
  return *known.shares_links;
}

}  // namespace paceline::simulator
