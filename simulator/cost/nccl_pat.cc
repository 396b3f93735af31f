// Tests: tests/simulator/nccl_collectives_test.cc.
#include "simulator/cost/nccl_pat.h"

#include <cmath>

#include "models/base/to_size.h"

namespace paceline::simulator {

std::optional<NcclPat> nccl_pat(const NcclModel& model) {
  using models::Collective;
  constexpr double giga = 1e9;
  constexpr double micro = 1e-6;
  const std::optional<NcclTables::Pat>& pat = model.tables().pat;
  const bool has_pat = model.collective() == Collective::all_gather ||
                       model.collective() == Collective::reduce_scatter;
  if (!pat || !has_pat || model.ranks() == 1 || model.nodes() != model.ranks()) return std::nullopt;
  const double step_us =
      model.told_latency(NcclProtocol::simple).value() / micro +
      model.tables()
          .network_latency_us[to_size(NcclAlgorithm::tree)][to_size(NcclProtocol::simple)];
  const NcclGraph& graph = model.graph(NcclAlgorithm::tree);
  const double channel_gbps = model.nodes() <= 2 ? graph.intra_gbps : graph.inter_gbps;
  return NcclPat{
      .latency =
          Seconds{micro * (pat->base_us + std::ilogb(model.nodes()) * pat->step_share * step_us +
                           pat->rank_us * model.ranks())},
      .bandwidth = BytesPerSecond{giga * pat->efficiency * graph.channels * channel_gbps}};
}

}  // namespace paceline::simulator
