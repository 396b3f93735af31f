// Tests: tests/simulator/planner_test.cc.
#include "simulator/planner/planning_job.h"

namespace paceline::simulator {

PlanningJob planning_job(const models::NetworkWork& network, int ranks, models::WireType wire,
                         const ComputeTimes& compute, models::Overlap overlap) {
  return {.network = network,
          .ranks = ranks,
          .wire = wire,
          .clock = stream_clock(network, compute, overlap, true),
          .earliest = stream_clock(network, compute.shortest(), overlap, false)};
}

}  // namespace paceline::simulator
