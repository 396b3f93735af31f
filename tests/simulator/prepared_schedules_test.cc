#include "simulator/engine/prepared_schedules.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "simulator/engine/flow_engine.h"
#include "simulator/engine/flow_program.h"
#include "simulator/engine/prepare.h"
#include "simulator/engine/step_engine.h"
#include "simulator/engine/step_program.h"
#include "tests/support/generators.h"
#include "tests/support/schedules.h"

namespace paceline::simulator {
namespace {

constexpr Bytes size{3e6};

models::PlannedSchedule planned(const models::CollectiveAlgorithm& algorithm,
                                const models::ScheduleOptions& options) {
  return {std::string(algorithm.name), options, algorithm.build(options)};
}

// The same links with other figures.
CommunicationCost refigured(CommunicationCost cost) {
  const auto factor = [] { return 0.25 * test::drawn(1, 16); };
  cost.intra.alpha *= factor();
  cost.intra.beta *= factor();
  cost.nic.alpha *= factor();
  cost.nic.beta *= factor();
  cost.gamma *= factor();
  cost.fabric.hop_latency *= factor();
  if (!cost.host) return cost;
  cost.host->crossing *= factor();
  cost.host->memory *= factor();
  cost.host->uplink *= factor();
  return cost;
}

void expect_near(const Completion& found, const Completion& expected, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    const double time = expected.of(rank).value();
    RC_ASSERT(std::abs(found.of(rank).value() - time) <= 1e-10 * time);
  }
}

// Whatever figures a schedule was prepared at, its times are those of the figures that it is read
// with: of an engine that prepares it by itself.
RC_GTEST_PROP(PreparedSchedules, HoldForAllFigures, ()) {
  const int p = test::drawn(2, 32);
  const CommunicationCost first = *test::communication_costs(p);
  const CommunicationCost second = refigured(first);
  const Routes first_routes(first, p);
  const Routes second_routes(second, p);
  RC_ASSERT(first_routes.is_alike(second_routes));
  PreparedSchedules prepared;
  for (const models::CollectiveAlgorithm& algorithm : models::all_reduce_catalogue()) {
    const auto options = test::option_sets(algorithm, p);
    const models::PlannedSchedule schedule = planned(
        algorithm,
        options[static_cast<std::size_t>(test::drawn(0, static_cast<int>(options.size()) - 1))]);
    const auto step = prepared.step(schedule, first_routes, most_prepared_messages);
    RC_ASSERT(prepared.step(schedule, second_routes, most_prepared_messages) == step);
    const auto flow = prepared.flow(schedule, first_routes);
    RC_ASSERT(prepared.flow(schedule, second_routes) == flow);
    RC_ASSERT(prepared.shares_links(schedule, first_routes) ==
              shares_links(schedule.schedule(), second));
    for (const CommunicationCost& cost : {first, second}) {
      const Routes routes(cost, p);
      expect_near(StepEngine(step, routes, cost.gamma.value()).completion(size),
                  StepEngine(schedule.schedule(), cost).completion(size), p);
      expect_near(FlowEngine(flow, routes, cost.gamma.value()).completion(0, size),
                  FlowEngine({&schedule.schedule(), 1}, cost).completion(0, size), p);
    }
  }
}

// Pipelines of different numbers of segments share what is inside, in whatever order they are asked
// for. The flow engine, which does not, is as fast where no link is shared.
TEST(PreparedSchedules, PutPipelinesTogetherFromOneInside) {
  constexpr int p = 21;
  CommunicationCost cost{.ranks_per_node = 1,
                         .nic = {Seconds{2e-6}, SecondsPerByte{1e-9}},
                         .gamma = SecondsPerByte{1e-10}};
  const Routes routes(cost, p);
  const models::CollectiveAlgorithm& tree = models::all_reduce_algorithm("double-binary-tree");
  PreparedSchedules prepared;
  std::shared_ptr<const StepParts> parts;
  for (const int segments : {4, 64, 1, 2, 3, 5, 16, 256, 4}) {
    const models::PlannedSchedule schedule = planned(tree, {.ranks = p, .segments = segments});
    const auto program = prepared.step(schedule, routes, most_prepared_messages);
    const StepEngine shared(program, routes, cost.gamma.value());
    const StepEngine alone(schedule.schedule(), cost);
    EXPECT_EQ(shared.prepared_messages(), alone.prepared_messages()) << segments;
    EXPECT_DOUBLE_EQ(shared.time(size).value(), alone.time(size).value()) << segments;
    if (!shares_links(schedule.schedule(), cost)) {
      const double flow =
          FlowEngine({&schedule.schedule(), 1}, cost).completion(0, size).last().value();
      EXPECT_NEAR(shared.time(size).value(), flow, 1e-9 * flow) << segments;
    }
    if (segments == 1) continue;
    if (parts == nullptr) parts = program->parts;
    EXPECT_EQ(program->parts, parts) << segments;
  }
}

TEST(PreparedSchedules, AreNotTakenForOtherLinks) {
  constexpr int p = 16;
  const CommunicationCost cost{.ranks_per_node = 4,
                               .intra = {Seconds{1e-6}, SecondsPerByte{1e-10}},
                               .nic = {Seconds{2e-6}, SecondsPerByte{1e-9}}};
  CommunicationCost two_nics = cost;
  two_nics.nics_per_node = 2;
  two_nics.nic_use = models::NicUse::affinity;
  CommunicationCost round_robin = cost;
  round_robin.placement = models::Placement::round_robin;
  CommunicationCost slow_node = cost;
  slow_node.slow_nodes = {{1, 0.5}};
  CommunicationCost small_nodes = cost;
  small_nodes.ranks_per_node = 2;
  CommunicationCost far = cost;
  far.fabric = {.kind = models::FabricKind::fat_tree, .levels = {{2, 3.0}}};
  const models::PlannedSchedule ring = planned(models::all_reduce_algorithm("ring"), {.ranks = p});
  PreparedSchedules prepared;
  const Routes routes(cost, p);
  const auto first = prepared.step(ring, routes, most_prepared_messages);
  for (const CommunicationCost& other : {two_nics, round_robin, slow_node, small_nodes, far}) {
    const Routes others(other, p);
    EXPECT_FALSE(others.is_alike(routes));
    const auto second = prepared.step(ring, others, most_prepared_messages);
    EXPECT_NE(second, first);
    EXPECT_DOUBLE_EQ(StepEngine(second, others, 0).time(size).value(),
                     StepEngine(ring.schedule(), other).time(size).value());
  }
  EXPECT_EQ(prepared.step(ring, routes, most_prepared_messages), first);
}

// A limit holds whatever was prepared before within a larger one.
TEST(PreparedSchedules, KeepToTheLimitOfWhoAsks) {
  constexpr int p = 65;
  const CommunicationCost cost{.ranks_per_node = 1, .nic = {Seconds{2e-6}, SecondsPerByte{1e-9}}};
  const Routes routes(cost, p);
  PreparedSchedules prepared;
  const models::PlannedSchedule tree =
      planned(models::all_reduce_algorithm("double-binary-tree"), {.ranks = p, .segments = 8});
  EXPECT_NE(prepared.step(tree, routes, most_prepared_messages), nullptr);
  EXPECT_THROW((void)prepared.step(tree, routes, 100), TooManyMessages);
  EXPECT_NE(prepared.step(tree, routes, most_prepared_messages), nullptr);
}

}  // namespace
}  // namespace paceline::simulator
