// Tests: tests/cli/command_test.py.
#include "experiments/agreement/agreement_totals.h"

#include <algorithm>
#include <utility>

#include "models/base/json.h"
#include "simulator/engine/simgrid_module.h"

namespace paceline::experiments {

AgreementTotals totals(std::span<const AgreementCell> cells, Seconds wall) {
  AgreementTotals totals{.simgrid = simulator::simgrid_version(), .wall = wall};
  for (const AgreementCell& cell : cells) {
    totals.apart += cell.agrees() ? 0 : 1;
    if (totals.worst == nullptr || cell.flow_difference > totals.worst->flow_difference)
      totals.worst = &cell;
    if (!cell.shares_links) totals.worst_step = std::max(totals.worst_step, cell.step_difference);
  }
  return totals;
}

std::string to_json(const AgreementRequest& request, std::span<const AgreementCell> cells,
                    const AgreementTotals& totals) {
  Json topologies = Json::object();
  for (const Topology* topology : request.topologies)
    topologies[std::string(topology->name)] = topology->summary;
  Json rows = Json::array();
  for (const AgreementCell& cell : cells) {
    rows.push_back({{"schedule", cell.schedule},
                    {"topology", cell.topology},
                    {"ranks", cell.ranks},
                    {"size_bytes", cell.size.value()},
                    {"shares_links", cell.shares_links},
                    {"step_s", cell.step.value()},
                    {"flow_s", cell.flow.value()},
                    {"simgrid_s", cell.simgrid.value()},
                    {"step_difference", cell.step_difference},
                    {"flow_difference", cell.flow_difference},
                    {"tolerance", cell.tolerance()},
                    {"agrees", cell.agrees()}});
  }
  const Json document = {{"schema", "paceline.agreement/1"},
                         {"simgrid", totals.simgrid},
                         {"topologies", std::move(topologies)},
                         {"cells", std::move(rows)},
                         {"cells_apart", totals.apart},
                         {"worst_flow_difference", totals.worst->flow_difference},
                         {"worst_unshared_step_difference", totals.worst_step},
                         {"wall_s", totals.wall.value()}};
  return document.indented();
}

}  // namespace paceline::experiments
