// Tests: tests/simulator/prepared_schedules_test.cc.
#include "simulator/engine/prepared_schedules.h"

#include "simulator/engine/flow_program.h"
#include "simulator/engine/prepare.h"
#include "simulator/engine/step_program.h"

namespace paceline::simulator {

PreparedSchedules::Entry& PreparedSchedules::entry(const models::PlannedSchedule& schedule,
                                                   const Routes& routes) {
  for (const auto& known : entries_) {
    if (known->schedule == schedule && known->routes.is_alike(routes)) return *known;
  }
  entries_.push_back(std::make_unique<Entry>(Entry{schedule, routes, {}, 0, {}, {}, {}}));
  return *entries_.back();
}

// Pipelines that differ in their segments alone have the same inside.
std::shared_ptr<Pipeline> PreparedSchedules::pipeline(const Entry& wanted,
                                                      const models::Schedule& inner,
                                                      std::int64_t most_messages) {
  for (const auto& known : entries_) {
    if (known->pipeline == nullptr || known->schedule.algorithm != wanted.schedule.algorithm)
      continue;
    models::ScheduleOptions options = known->schedule.options;
    options.segments = wanted.schedule.options.segments;
    if (options == wanted.schedule.options && known->routes.is_alike(wanted.routes))
      return known->pipeline;
  }
  return std::make_shared<Pipeline>(inner, wanted.routes, most_messages);
}

// What fitted into a larger limit is prepared again within a smaller one, which may refuse it.
std::shared_ptr<const StepProgram> PreparedSchedules::step(const models::PlannedSchedule& schedule,
                                                           const Routes& routes,
                                                           std::int64_t most_messages) {
  Entry& known = entry(schedule, routes);
  if (known.step != nullptr && known.most_messages <= most_messages) return known.step;
  if (const models::Schedule* inner = inside_pipeline(schedule.schedule(), routes)) {
    check_messages(schedule.schedule(), routes, Positions(schedule.schedule().ranks()),
                   most_messages);
    known.pipeline = pipeline(known, *inner, most_messages);
    known.step = std::make_shared<StepProgram>(
        known.pipeline->program(schedule.schedule(), routes, most_messages));
  } else {
    known.step = std::make_shared<StepProgram>(
        make_step_program(schedule.schedule(), routes, Collapse::equal_positions, most_messages));
  }
  known.most_messages = most_messages;
  return known.step;
}

std::shared_ptr<const FlowPrograms> PreparedSchedules::flow(const models::PlannedSchedule& schedule,
                                                            const Routes& routes) {
  Entry& known = entry(schedule, routes);
  if (known.flow == nullptr)
    known.flow =
        std::make_shared<FlowPrograms>(make_flow_programs({&schedule.schedule(), 1}, routes));
  return known.flow;
}

bool PreparedSchedules::shares_links(const models::PlannedSchedule& schedule,
                                     const Routes& routes) {
  Entry& known = entry(schedule, routes);
  if (!known.shares_links)
    known.shares_links = simulator::shares_links(schedule.schedule(), routes);
  return *known.shares_links;
}

}  // namespace paceline::simulator
