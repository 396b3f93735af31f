// A whole iteration with buckets in flight, its all-reduces followed by the flow engine and by
// SimGrid.
#include <gtest/gtest.h>

#include <cmath>

#include "experiments/agreement/topologies.h"
#include "simulator/engine/engine_kind.h"
#include "simulator/engine/flow_engine.h"
#include "simulator/engine/simgrid_engine.h"
#include "simulator/iteration/in_flight.h"
#include "simulator/iteration/steady_state.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

using models::Overlap;

// Eight layers of up to 8 MB, whose communication takes about as long as their backward pass.
Seconds period(std::string_view topology, std::string_view strategy, int streams, Overlap overlap,
               EngineKind kind) {
  constexpr int ranks = 16;
  const models::NetworkWork network =
      test::chain_network({30'000, 400'000, 70'000, 2'000'000, 900, 1'000'000, 350'000, 1'500'000});
  ComputeTimes compute;
  for (int layer = 0; layer < 8; ++layer)
    compute.layers.push_back({Seconds{2e-4 * (1 + layer % 3)}, Seconds{4e-4 * (1 + layer % 3)}});
  compute.update = Seconds{1e-4};
  models::Plan plan = models::make_plan(
      models::strategy(strategy), network.gradients, ranks, models::WireType::fp32,
      {.fusion = Bytes{1e6}, .group_size = 4, .servers = 4, .streams = streams});
  plan.overlap = overlap;
  const std::vector<models::Schedule> schedules = test::schedules_of(plan);
  const CommunicationCost cost = experiments::topology(topology).cost(ranks);
  FlowEngine flow(schedules, cost);
  const IterationDag alone = test::dag_of_buckets_alone(network, plan, compute, flow);
  if (kind == EngineKind::flow)
    return steady_state(with_buckets_in_flight(alone, plan, flow)).period;
  SimgridEngine simgrid(schedules, cost);
  return steady_state(with_buckets_in_flight(alone, plan, simgrid)).period;
}

// 0.5 % is what the engines owe each other; they are held to less.
void expect_equal_periods(std::string_view strategy, int streams, Overlap overlap) {
  for (const std::string_view topology : {"nic-8", "fat-tree-2", "rail-4"}) {
    const Seconds flow = period(topology, strategy, streams, overlap, EngineKind::flow);
    const Seconds simgrid = period(topology, strategy, streams, overlap, EngineKind::simgrid);
    EXPECT_NEAR(flow.value(), simgrid.value(), 1e-6 * simgrid.value())
        << strategy << " on " << topology << ", " << streams << " streams, " << name(overlap);
  }
}

class InFlightAgreement : public testing::TestWithParam<Overlap> {
 protected:
  void SetUp() override {
    if (!SimgridEngine::is_built_in()) GTEST_SKIP() << "built without SimGrid";
  }
};

TEST_P(InFlightAgreement, StreamsHaveEqualPeriods) {
  for (const int streams : {2, 4}) {
    for (const std::string_view strategy : {"ring", "fused-ring", "hierarchical"})
      expect_equal_periods(strategy, streams, GetParam());
  }
}

TEST_P(InFlightAgreement, ParameterServersHaveEqualPeriods) {
  expect_equal_periods("parameter-server", 1, GetParam());
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, InFlightAgreement,
                         testing::Values(Overlap::wait_free, Overlap::none,
                                         Overlap::double_buffered, Overlap::priority));

}  // namespace
}  // namespace paceline::simulator
