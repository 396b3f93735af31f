// Tests: tests/cli/command_test.py, tests/cli/schemas_test.py.
#include "simulator/cost/nccl_json.h"

#include <functional>
#include <optional>
#include <utility>

namespace paceline::simulator {
namespace {

constexpr double giga = 1e9;

const Document<NcclGraph>& graph_document() {
  static const auto document =
      Document<NcclGraph>()
          .add("channels", &NcclGraph::channels, at_least(1))
          .add(
              "intra_bytes_per_s", [](const NcclGraph& graph) { return giga * graph.intra_gbps; },
              not_negative())
          .add(
              "inter_bytes_per_s", [](const NcclGraph& graph) { return giga * graph.inter_gbps; },
              not_negative())
          .add("through_one_rank", &NcclGraph::through_one_rank);
  return document;
}

// An algorithm with a protocol, at a size or at any.
struct PairLine {
  const NcclExpectation& of;
  NcclAlgorithm algorithm;
  NcclProtocol protocol;
  Bytes size{0};

  [[nodiscard]] std::optional<Seconds> time() const {
    return of.model.time(algorithm, protocol, size);
  }
  [[nodiscard]] bool is_chosen() const {
    const auto best = of.model.choice(size);
    if (of.nvls && of.nvls->is_chosen(of.model, size)) return false;
    if (of.pat && of.pat->is_chosen(of.model, size)) return false;
    return best && best->algorithm == algorithm && best->protocol == protocol;
  }
};

std::vector<PairLine> pairs_of(const NcclExpectation& of, Bytes size = Bytes{0}) {
  std::vector<PairLine> lines;
  for (const auto& [algorithm, protocol] : nccl_pairs)
    lines.push_back({of, algorithm, protocol, size});
  return lines;
}

const Document<PairLine>& pair_name_document() {
  static const auto document = Document<PairLine>()
                                   .add("algorithm", &PairLine::algorithm)
                                   .add("protocol", &PairLine::protocol);
  return document;
}

const Document<PairLine>& pair_document() {
  using Line = PairLine;
  static const auto document =
      Document<Line>()
          .include(pair_name_document())
          .add(
              "latency_s",
              [](const Line& line) { return line.of.model.latency(line.algorithm, line.protocol); })
          .add("bandwidth_bytes_per_s", [](const Line& line) {
            return line.of.model.bandwidth(line.algorithm, line.protocol);
          });
  return document;
}

const Document<PairLine>& time_document() {
  static const auto document = Document<PairLine>()
                                   .include(pair_name_document())
                                   .add("time_s", &PairLine::time, or_null(positive()))
                                   .add("chosen", &PairLine::is_chosen);
  return document;
}

struct SizeLine {
  const NcclExpectation& of;
  Bytes size;
};

const Document<SizeLine>& choice_document() {
  using Line = SizeLine;
  const auto choice = [](auto member) {
    return [member](const Line& line) {
      return std::invoke(member, *line.of.model.choice(line.size));
    };
  };
  static const auto document = Document<Line>()
                                   .add("algorithm", choice(&NcclChoice::algorithm))
                                   .add("protocol", choice(&NcclChoice::protocol))
                                   .add("channels", choice(&NcclChoice::channels), at_least(1))
                                   .add("time_s", choice(&NcclChoice::time), positive())
                                   .add("busbw_bytes_per_s", [](const Line& line) {
                                     const NcclModel& model = line.of.model;
                                     return bus_bandwidth(model.collective(), model.ranks(),
                                                          line.size, model.choice(line.size)->time);
                                   });
  return document;
}

const Document<SizeLine>& size_document() {
  using Line = SizeLine;
  static const auto document =
      Document<Line>()
          .add("bytes", &Line::size)
          .add(
              "times", [](const Line& line) { return pairs_of(line.of, line.size); },
              time_document(), 1)
          .add(
              "nvls_time_s",
              [](const Line& line) {
                return line.of.nvls
                           ? std::optional(line.of.nvls->time(line.of.model.ranks(), line.size))
                           : std::nullopt;
              },
              or_null(positive()))
          .add("nvls_chosen",
               [](const Line& line) {
                 return line.of.nvls && line.of.nvls->is_chosen(line.of.model, line.size);
               })
          .add(
              "pat_time_s",
              [](const Line& line) {
                return line.of.pat ? std::optional(line.of.pat->time(line.size)) : std::nullopt;
              },
              or_null(positive()))
          .add("pat_chosen",
               [](const Line& line) {
                 return line.of.pat && line.of.pat->is_chosen(line.of.model, line.size);
               })
          .add(
              "choice",
              [](const Line& line) { return line.of.model.choice(line.size) ? &line : nullptr; },
              choice_document());
  return document;
}

const Document<NcclTables>& tables_document() {
  static const auto document = Document<NcclTables>()
                                   .add("version", &NcclTables::version)
                                   .add("url", &NcclTables::url)
                                   .add("source", &NcclTables::source)
                                   .add("sections", &NcclTables::sources);
  return document;
}

const Document<NcclModel>& graphs_document() {
  static const auto graph = [](NcclAlgorithm algorithm) {
    return [algorithm](const NcclModel& model) { return model.graph(algorithm); };
  };
  static const auto document = Document<NcclModel>()
                                   .add("ring", graph(NcclAlgorithm::ring), graph_document())
                                   .add("tree", graph(NcclAlgorithm::tree), graph_document());
  return document;
}

}  // namespace

const Document<NcclExpectation>& nccl_document() {
  using Of = NcclExpectation;
  static const auto model = [](const Of& of) -> const NcclModel& { return of.model; };
  static const auto document =
      Document<Of>("paceline.nccl/1",
                   "paceline show nccl --json: what NCCL's tuning model expects.")
          .add("cluster", [](const Of& of) { return of.cluster.name; })
          .add("device", [](const Of& of) { return of.cluster.device.name; })
          .add("compute_capability",
               [](const Of& of) { return described_capability(of.model.compute_capability()); })
          .add("compute_capability_known", through(model, &NcclModel::knows_device))
          .add("collective", [](const Of& of) { return name(of.model.collective()); })
          .add("ranks", through(model, &NcclModel::ranks), at_least(1))
          .add("nodes", through(model, &NcclModel::nodes), at_least(1))
          .add_constant("provenance", "predicted")
          .add("timed_by", [](const Of& of) { return described(of.model.tables()); })
          .add(
              "tables", [](const Of& of) -> const NcclTables& { return of.model.tables(); },
              tables_document())
          .add("communicator_channels", through(model, &NcclModel::communicator_channels),
               at_least(1))
          .add("graphs", model, graphs_document())
          .add(
              "algorithms", [](const Of& of) { return pairs_of(of); }, pair_document(), 1)
          .add(
              "sizes",
              [](const Of& of) {
                std::vector<SizeLine> lines;
                for (const Bytes size : of.sizes) lines.push_back({of, size});
                return lines;
              },
              size_document(), 1);
  return document;
}

}  // namespace paceline::simulator
