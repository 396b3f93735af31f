// paceline show nccl: which algorithm and protocol NCCL's own model chooses, size by size.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/job/sizes.h"
#include "cli/output_format.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "models/base/json_records.h"
#include "models/base/parse_units.h"
#include "simulator/cost/nccl_json.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/cost/nccl_nvls.h"

namespace paceline::cli {
namespace {

using simulator::NcclAlgorithm;
using simulator::NcclExpectation;
using simulator::NcclModel;
using simulator::NcclNvls;

struct Options {
  std::string cluster;
  std::string collective;
  std::string ranks;
  std::string sizes = "256B-1GiB";
  std::string version;
  std::string cpu = "intel";
  OutputFormat format;
};

constexpr double micro = 1e-6;

std::string graph_text(const NcclModel& model, NcclAlgorithm algorithm) {
  const simulator::NcclGraph& graph = model.graph(algorithm);
  const std::string inter = model.nodes() > 1 && graph.inter_gbps != graph.intra_gbps
                                ? fmt::format(" ({} GB/s between nodes)", graph.inter_gbps)
                                : "";
  return fmt::format("{} {} x {} GB/s{}", name(algorithm), graph.channels, graph.intra_gbps, inter);
}

// Nothing where there is one rank.
Table table_of(const NcclExpectation& of) {
  const NcclModel& model = of.model;
  const std::optional<NcclNvls>& nvls = of.nvls;
  std::vector<Table::Column> columns = {{"size"}};
  for (const auto& [algorithm, protocol] : simulator::nccl_pairs) {
    columns.push_back({fmt::format("{} {}", name(algorithm), name(protocol))});
  }
  if (nvls) columns.push_back({std::string(nvls->name())});
  if (of.pat) columns.push_back({"PAT"});
  columns.insert(columns.end(), {{"channels"}, {"busbw"}});
  Table table(std::move(columns));
  if (model.ranks() == 1) return table;
  for (const Bytes size : of.sizes) {
    const simulator::NcclChoice choice = *model.choice(size);
    const bool in_switches = nvls && nvls->is_chosen(model, size);
    const bool by_pat = of.pat && of.pat->is_chosen(model, size);
    const auto cell = [](Seconds time, bool is_chosen) {
      return fmt::format("{}{:.2f}", is_chosen ? "* " : "", time.value() / micro);
    };
    std::vector<std::string> cells = {to_text_binary(size)};
    for (const auto& [algorithm, protocol] : simulator::nccl_pairs) {
      const bool chosen =
          !in_switches && !by_pat && algorithm == choice.algorithm && protocol == choice.protocol;
      const std::optional<Seconds> time = model.time(algorithm, protocol, size);
      cells.push_back(time ? cell(*time, chosen) : ".");
    }
    if (nvls) cells.push_back(cell(nvls->time(model.ranks(), size), in_switches));
    if (of.pat) cells.push_back(cell(of.pat->time(size), by_pat));
    cells.push_back(fmt::format("{}", in_switches ? nvls->channels : choice.channels));
    const Seconds least = in_switches ? nvls->time(model.ranks(), size)
                          : by_pat    ? of.pat->time(size)
                                      : choice.time;
    cells.push_back(paceline::to_text(
        simulator::bus_bandwidth(model.collective(), model.ranks(), size, least)));
    table.add(std::move(cells));
  }
  return table;
}

std::string to_text(const NcclExpectation& of, int width) {
  const NcclModel& model = of.model;
  const models::Cluster& cluster = of.cluster;
  std::string text =
      fmt::format("NCCL {} {} on {}: {} rank{} ({} node{} of {} {}), compute capability {}{}, {}\n",
                  model.tables().version, name(model.collective()), cluster.name, model.ranks(),
                  model.ranks() == 1 ? "" : "s", model.nodes(), model.nodes() == 1 ? "" : "s",
                  cluster.ranks_per_node, cluster.device.name,
                  simulator::described_capability(model.compute_capability()),
                  model.knows_device() ? "" : " (by its rates: the device is in no table)",
                  model.on_nvlink() ? "NVLink" : "PCIe");
  if (model.ranks() == 1) return text + "one rank: nothing to do\n";
  text += fmt::format("channels: {}; {}; {} in the communicator\n\n",
                      graph_text(model, NcclAlgorithm::ring),
                      graph_text(model, NcclAlgorithm::tree), model.communicator_channels());
  text += table_of(of).blocks(width);
  text += fmt::format(
      "\ntimes in us, by {}: what another program expects, not our engine's prediction, and no "
      "measurement; NCCL knows no switches of a fabric, and paceline time nccl predicts what its "
      "choice "
      "takes there\n* what NCCL chooses: the least; . is "
      "not used; busbw as nccl-tests defines it\n"
      "source: {}\n",
      described(model.tables()), model.tables().source);
  return text;
}

void show(const Options& options) {
  check_output_format(options.format,
                      {{"--cluster", options.cluster, job::PathUse::name_or_input}});
  job::require_option(options.cluster, "--cluster", "h200-ndr");
  const models::Cluster cluster = job::load_cluster(options.cluster);
  job::require_option(options.ranks, "--ranks", "64");
  const int ranks = job::parse_ranks(options.ranks, cluster);
  const models::Collective collective =
      options.collective.empty()
          ? models::Collective::all_reduce
          : job::parsing_option("--collective", [&] {
              const auto asked = models::collective_from_name(options.collective);
              simulator::check_has_model(asked);
              return asked;
            });
  const std::vector<Bytes> sizes =
      job::parsing_option("--sizes", [&] { return job::parse_sizes(options.sizes, 4); });
  const NcclModel model(
      job::parsing_option("--nccl",
                          [&] {
                            return simulator::nccl_tables(options.version.empty()
                                                              ? simulator::nccl_versions().back()
                                                              : options.version);
                          }),
      cluster, ranks, collective,
      job::parsing_option("--cpu", [&] { return simulator::cpu_vendor_from_name(options.cpu); }));
  const NcclExpectation of{model, cluster, simulator::nccl_nvls(model, cluster),
                           simulator::nccl_pat(model), sizes};
  print_answer(options.format, {.document = [&] { return simulator::nccl_document().json(of); },
                                .records = {{"sizes", "times"}, {"cluster", "ranks", "bytes"}},
                                .markdown = [&] { return table_of(of).markdown(); },
                                .text = [&](int width) { return to_text(of, width); }});
}

}  // namespace

void add_show_nccl(Command& show_command) {
  Command& command = show_command.add_command(
      "nccl", "What NCCL's own tuning model expects of a collective, and chooses, size by size");
  const auto options = std::make_shared<Options>();
  command
      .add_option("--cluster", options->cluster, "Cluster: a name of the catalogue or a YAML file")
      .value("NAME|FILE");
  command
      .add_option("--collective", options->collective,
                  "all-reduce, all-gather, reduce-scatter, broadcast or reduce")
      .value("NAME (all-reduce)");
  command.add_option("--ranks", options->ranks, "Number of ranks").value("N");
  command
      .add_option("--sizes", options->sizes,
                  "Bytes, as nccl-tests counts them: 1KiB,25MiB or 256B-1GiB (times four)")
      .value("LIST|RANGE (256B-1GiB)");
  add_field_text(command, options->version, "nccl");
  command.add_option("--cpu", options->cpu, "Whose processors the nodes have")
      .value("intel|amd (intel)");
  add_output_formats(command, options->format);
  command.on_run([options] { show(*options); });
}

}  // namespace paceline::cli
