// Tests: tests/cli/command_test.py.
#include "experiments/agreement/agreement_totals.h"

#include <algorithm>
#include <functional>
#include <utility>

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

namespace {

const Document<AgreementCell>& cell_document() {
  using Cell = AgreementCell;
  static const auto document = Document<Cell>()
                                   .add("schedule", &Cell::schedule)
                                   .add("topology", &Cell::topology)
                                   .add("ranks", &Cell::ranks, at_least(1))
                                   .add("size_bytes", &Cell::size)
                                   .add("shares_links", &Cell::shares_links)
                                   .add("step_s", &Cell::step)
                                   .add("flow_s", &Cell::flow)
                                   .add("simgrid_s", &Cell::simgrid)
                                   .add("step_difference", &Cell::step_difference, not_negative())
                                   .add("flow_difference", &Cell::flow_difference, not_negative())
                                   .add("tolerance", &Cell::tolerance, not_negative())
                                   .add("agrees", &Cell::agrees);
  return document;
}

}  // namespace

const Document<Agreement>& agreement_document() {
  static const auto totals = [](auto member) {
    return [member](const Agreement& of) { return std::invoke(member, of.totals); };
  };
  static const auto document =
      Document<Agreement>("paceline.agreement/1",
                          "paceline agree --json: our engines beside SimGrid.")
          .add("simgrid", totals(&AgreementTotals::simgrid))
          .add("topologies",
               [](const Agreement& of) {
                 std::vector<std::pair<std::string, std::string>> summaries;
                 for (const Topology* topology : of.request.topologies)
                   summaries.emplace_back(topology->name, topology->summary);
                 return summaries;
               })
          .add("cells", &Agreement::cells, cell_document(), 1)
          .add("cells_apart", totals(&AgreementTotals::apart))
          .add(
              "worst_flow_difference",
              [](const Agreement& of) { return of.totals.worst->flow_difference; }, not_negative())
          .add("worst_unshared_step_difference", totals(&AgreementTotals::worst_step),
               not_negative())
          .add("wall_s", totals(&AgreementTotals::wall));
  return document;
}

}  // namespace paceline::experiments
