// Tests: tests/cli/command_test.py.
#include "simulator/cost/nccl_json.h"

#include <optional>
#include <utility>

#include "models/base/json.h"

namespace paceline::simulator {
namespace {

Json graph_json(const NcclModel& model, NcclAlgorithm algorithm) {
  constexpr double giga = 1e9;
  const simulator::NcclGraph& graph = model.graph(algorithm);
  return {{"channels", graph.channels},
          {"intra_bytes_per_s", giga * graph.intra_gbps},
          {"inter_bytes_per_s", giga * graph.inter_gbps},
          {"through_one_rank", graph.through_one_rank}};
}

Json size_json(const NcclModel& model, Bytes size) {
  const auto best = model.choice(size);
  Json times = Json::array();
  for (const auto& [algorithm, protocol] : nccl_pairs) {
    const std::optional<Seconds> time = model.time(algorithm, protocol, size);
    times.push_back(
        {{"algorithm", name(algorithm)},
         {"protocol", name(protocol)},
         {"time_s", time ? Json(time->value()) : Json(nullptr)},
         {"chosen", best && best->algorithm == algorithm && best->protocol == protocol}});
  }
  Json choice = nullptr;
  if (best)
    choice = {{"algorithm", name(best->algorithm)},
              {"protocol", name(best->protocol)},
              {"channels", best->channels},
              {"time_s", best->time.value()},
              {"busbw_bytes_per_s", bus_bandwidth(model.ranks(), size, best->time).value()}};
  return {{"bytes", size.value()}, {"times", std::move(times)}, {"choice", std::move(choice)}};
}

}  // namespace

std::string to_json(const NcclModel& model, const models::Cluster& cluster,
                    std::span<const Bytes> sizes) {
  Json sources = Json::object();
  for (const auto& [section, source] : model.tables().sources) sources[section] = source;
  Json pairs = Json::array();
  for (const auto& [algorithm, protocol] : nccl_pairs) {
    pairs.push_back({{"algorithm", name(algorithm)},
                     {"protocol", name(protocol)},
                     {"latency_s", model.latency(algorithm, protocol).value()},
                     {"bandwidth_bytes_per_s", model.bandwidth(algorithm, protocol).value()}});
  }
  Json rows = Json::array();
  for (const Bytes size : sizes) rows.push_back(size_json(model, size));
  const Json document = {{"schema", "paceline.nccl/1"},
                         {"cluster", cluster.name},
                         {"device", cluster.device.name},
                         {"compute_capability", described_capability(model.compute_capability())},
                         {"compute_capability_known", model.knows_device()},
                         {"ranks", model.ranks()},
                         {"nodes", model.nodes()},
                         {"provenance", "predicted"},
                         {"timed_by", described(model.tables())},
                         {"tables",
                          {{"version", model.tables().version},
                           {"url", model.tables().url},
                           {"source", model.tables().source},
                           {"sections", std::move(sources)}}},
                         {"communicator_channels", model.communicator_channels()},
                         {"graphs",
                          {{"ring", graph_json(model, NcclAlgorithm::ring)},
                           {"tree", graph_json(model, NcclAlgorithm::tree)}}},
                         {"algorithms", std::move(pairs)},
                         {"sizes", std::move(rows)}};
  return document.indented();
}

}  // namespace paceline::simulator
