// paceline agree: the engines beside SimGrid, schedule by topology by size.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/job.h"
#include "cli/table.h"
#include "experiments/agreement/agreement.h"
#include "models/base/parse_units.h"
#include "simulator/engine/simgrid_module.h"

namespace paceline::cli {
namespace {

using experiments::AgreementCell;

// Beyond this SimGrid takes minutes for a cell.
constexpr int most_ranks = 256;

struct Options {
  std::string ranks = "16,64";
  std::string sizes = "64KiB,4MiB,64MiB";
  std::string topologies = "all";
  std::string schedules = "all";
  bool json = false;
};

// Those that a list names, or all for "all".
template <class Entry, class Find>
std::vector<const Entry*> named(const char* option, const std::string& text,
                                std::span<const Entry> all, Find find) {
  std::vector<const Entry*> list;
  if (text == "all") {
    for (const Entry& entry : all) list.push_back(&entry);
    return list;
  }
  parsing_option(option, [&] {
    for (const std::string& part : comma_list(text)) list.push_back(&find(part));
  });
  return list;
}

experiments::AgreementRequest load_request(const Options& options) {
  experiments::AgreementRequest request;
  request.schedules = named("--schedule", options.schedules, models::all_reduce_catalogue(),
                            models::all_reduce_algorithm);
  request.topologies =
      named("--topology", options.topologies, experiments::topologies(), experiments::topology);
  parsing_option("--ranks", [&] {
    for (const std::string& part : comma_list(options.ranks))
      request.ranks.push_back(static_cast<int>(parse_count(part, 2, most_ranks)));
  });
  parsing_option("--sizes", [&] {
    for (const std::string& part : comma_list(options.sizes))
      request.sizes.push_back(parse_bytes(part));
  });
  return request;
}

std::string difference(double share) {
  return fmt::format("{:.1e} %", 100 * share);
}

struct Totals {
  std::size_t apart = 0;                 // cells
  const AgreementCell* worst = nullptr;  // by the flow engine's difference
  double worst_step = 0;                 // where no link is shared
  std::string simgrid;                   // version
  double wall_s = 0;

  Totals(const std::vector<AgreementCell>& cells, double seconds)
      : simgrid(simulator::simgrid_version()), wall_s(seconds) {
    for (const AgreementCell& cell : cells) {
      apart += cell.agrees() ? 0 : 1;
      if (worst == nullptr || cell.flow_difference > worst->flow_difference) worst = &cell;
      if (!cell.shares_links) worst_step = std::max(worst_step, cell.step_difference);
    }
  }
};

std::string to_text(const experiments::AgreementRequest& request,
                    const std::vector<AgreementCell>& cells, const Totals& totals) {
  Table table({{"schedule", Align::left},
               {"topology", Align::left},
               {"ranks"},
               {"size"},
               {"links", Align::left},
               {"step"},
               {"flow"},
               {"SimGrid"},
               {"flow vs SimGrid"},
               {"", Align::left}});
  for (const AgreementCell& cell : cells) {
    table.add({cell.schedule, cell.topology, fmt::format("{}", cell.ranks),
               to_text_binary(cell.size), cell.shares_links ? "shared" : "own",
               paceline::to_text(cell.step), paceline::to_text(cell.flow),
               paceline::to_text(cell.simgrid), difference(cell.flow_difference),
               cell.agrees() ? "" : "APART"});
  }
  std::string text = table.text();
  text += "\nTopologies:\n";
  for (const experiments::Topology* topology : request.topologies)
    text += fmt::format("  {:<13} {}\n", topology->name, topology->summary);
  text += fmt::format(
      "\nTimes are of the last rank, differences of the rank that is the most apart. Allowed: "
      "{} % where links are\nshared; {} % elsewhere, and to the step engine as well. Where links "
      "are shared the step engine is an estimate.\n",
      100 * experiments::shared_tolerance, 100 * experiments::unshared_tolerance);
  text += fmt::format(
      "\n{} cells, {} apart; worst {} ({} on {}, {} ranks, {}); step engine where nothing is "
      "shared {}\nSimGrid {}, {:.1f} s\n",
      cells.size(), totals.apart, difference(totals.worst->flow_difference), totals.worst->schedule,
      totals.worst->topology, totals.worst->ranks, to_text_binary(totals.worst->size),
      difference(totals.worst_step), totals.simgrid, totals.wall_s);
  return text;
}

nlohmann::ordered_json to_json(const experiments::AgreementRequest& request,
                               const std::vector<AgreementCell>& cells, const Totals& totals) {
  nlohmann::ordered_json topologies = nlohmann::ordered_json::object();
  for (const experiments::Topology* topology : request.topologies)
    topologies[std::string(topology->name)] = topology->summary;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
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
  return {{"schema", "paceline.agreement/1"},
          {"simgrid", totals.simgrid},
          {"topologies", std::move(topologies)},
          {"cells", std::move(rows)},
          {"cells_apart", totals.apart},
          {"worst_flow_difference", totals.worst->flow_difference},
          {"worst_unshared_step_difference", totals.worst_step},
          {"wall_s", totals.wall_s}};
}

void list_topologies() {
  for (const experiments::Topology& topology : experiments::topologies())
    fmt::print("{:<13} {}\n", topology.name, topology.summary);
}

void run(const Options& options) {
  if (options.topologies == "help") return list_topologies();
  const experiments::AgreementRequest request = load_request(options);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<AgreementCell> cells = experiments::compare_engines(request);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  const Totals totals(cells, wall.count());
  fmt::print("{}", options.json ? to_json(request, cells, totals).dump(2) + "\n"
                                : to_text(request, cells, totals));
  if (totals.apart > 0)
    throw RunError("hold the engines to SimGrid",
                   fmt::format("{} of {} cells are apart", totals.apart, cells.size()));
}

}  // namespace

void add_agree(Command& app) {
  Command& command =
      app.add_command("agree", "The engines beside SimGrid: schedule by topology by size");
  const auto options = std::make_shared<Options>();
  command
      .add_option("--schedule", options->schedules,
                  "All-reduce schedules (paceline show catalog), or all")
      .value("NAME,...|all");
  command
      .add_option("--topology", options->topologies, "Built-in clusters, or all; help lists them")
      .value("NAME,...|all|help");
  command
      .add_option(
          "--ranks", options->ranks,
          fmt::format("Numbers of ranks, 2 to {}; by default {}", most_ranks, options->ranks))
      .value("P,...");
  command
      .add_option("--sizes", options->sizes,
                  fmt::format("Bucket sizes; by default {}", options->sizes))
      .value("SIZE,...");
  command.add_flag("--json", options->json, "Print one JSON document");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
