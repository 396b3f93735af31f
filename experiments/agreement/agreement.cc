// Tests: tests/cli/command_test.py.
#include "experiments/agreement/agreement.h"

#include <algorithm>
#include <cmath>

#include "simulator/engine/engine_kind.h"
#include "simulator/engine/flow_engine.h"
#include "simulator/engine/prepare.h"
#include "simulator/engine/step_engine.h"

namespace paceline::experiments {
namespace {

using simulator::Completion;

double worst_difference(const Completion& found, const Completion& expected, int ranks) {
  double worst = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const double difference = std::abs((found.of(rank) - expected.of(rank)).value());
    if (difference > 0) worst = std::max(worst, difference / expected.of(rank).value());
  }
  return worst;
}

}  // namespace

std::vector<AgreementCell> compare_engines(const AgreementRequest& request) {
  std::vector<AgreementCell> cells;
  for (const models::CollectiveAlgorithm* algorithm : request.schedules) {
    for (const Topology* topology : request.topologies) {
      for (const int ranks : request.ranks) {
        const models::Schedule schedule = algorithm->build({.ranks = ranks});
        const simulator::CommunicationCost cost = topology->cost(ranks);
        const simulator::StepEngine step(schedule, cost);
        simulator::FlowEngine flow({&schedule, 1}, cost);
        const auto simgrid =
            simulator::make_network_engine(simulator::EngineKind::simgrid, {&schedule, 1}, cost);
        const bool shares_links = simulator::shares_links(schedule, cost);
        for (const Bytes size : request.sizes) {
          const Completion by_step = step.completion(size);
          const Completion by_flow = flow.completion(0, size);
          const Completion by_simgrid = simgrid->completion(0, size);
          cells.push_back({.schedule = std::string(algorithm->name),
                           .topology = std::string(topology->name),
                           .ranks = ranks,
                           .size = size,
                           .shares_links = shares_links,
                           .step = by_step.last(),
                           .flow = by_flow.last(),
                           .simgrid = by_simgrid.last(),
                           .step_difference = worst_difference(by_step, by_simgrid, ranks),
                           .flow_difference = worst_difference(by_flow, by_simgrid, ranks)});
        }
      }
    }
  }
  return cells;
}

}  // namespace paceline::experiments
