// paceline agree: the engines beside SimGrid, schedule by topology by size.
#include <fmt/core.h>

#include <chrono>

#include "cli/command.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "experiments/agreement/agreement.h"
#include "experiments/agreement/agreement_totals.h"
#include "models/base/json_records.h"
#include "models/base/parse_units.h"

namespace paceline::cli {
namespace {

using experiments::AgreementCell;

// With more ranks SimGrid takes minutes for a cell.
constexpr int most_ranks = 256;

struct Options {
  std::string ranks = "16,64";
  std::string sizes = "64KiB,4MiB,64MiB";
  std::string topologies = "all";
  std::string schedules = "all";
  bool wide = false;
  OutputFormat format;
};

// The entries that a list names, or all of them for "all".
template <class Entry, class Find>
std::vector<const Entry*> named(const char* option, const std::string& text,
                                std::span<const Entry> all, Find find) {
  std::vector<const Entry*> list;
  if (text == "all") {
    for (const Entry& entry : all) list.push_back(&entry);
    return list;
  }
  job::parsing_option(option, [&] {
    for (const std::string& part : job::comma_list(text)) list.push_back(&find(part));
  });
  return list;
}

experiments::AgreementRequest load_request(const Options& options) {
  experiments::AgreementRequest request;
  request.schedules = named("--schedule", options.schedules, models::all_reduce_catalogue(),
                            models::all_reduce_algorithm);
  request.topologies =
      named("--topology", options.topologies, experiments::topologies(), experiments::topology);
  job::parsing_option("--ranks", [&] {
    for (const std::string& part : job::comma_list(options.ranks))
      request.ranks.push_back(static_cast<int>(parse_count(part, 2, most_ranks)));
  });
  job::parsing_option("--sizes", [&] {
    for (const std::string& part : job::comma_list(options.sizes))
      request.sizes.push_back(parse_bytes(part));
  });
  return request;
}

std::string difference(double share) {
  return fmt::format("{:.1e} %", 100 * share);
}

Table table_of(const std::vector<AgreementCell>& cells) {
  Table table({{"schedule", Align::left},
               {"topology", Align::left},
               {"ranks"},
               {"size"},
               {"links", Align::left, 2},
               {"step", Align::right, 1},
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
  return table;
}

std::string to_text(const experiments::AgreementRequest& request,
                    const std::vector<AgreementCell>& cells,
                    const experiments::AgreementTotals& totals, int width) {
  const Table::Fitted table = table_of(cells).fitted(width);
  std::string text = table.text + table.not_shown();
  text += "\nTopologies:\n";
  for (const experiments::Topology* topology : request.topologies)
    text += fmt::format("  {:<13} {}\n", topology->name, topology->summary);
  text += fmt::format(
      "\nAll times are predicted, by three engines. They are of the last rank, differences of the "
      "rank that is the most apart. Allowed: {} % where links are shared; {} % elsewhere, and to "
      "the step engine as well. Where links are shared the step engine is an estimate.\n",
      100 * experiments::shared_tolerance, 100 * experiments::unshared_tolerance);
  text += fmt::format(
      "\n{} cells, {} apart; worst {} ({} on {}, {} ranks, {}); step engine where nothing is "
      "shared {}\nSimGrid {}; {:.1f} s, measured, for all of it\n",
      cells.size(), totals.apart, difference(totals.worst->flow_difference), totals.worst->schedule,
      totals.worst->topology, totals.worst->ranks, to_text_binary(totals.worst->size),
      difference(totals.worst_step), totals.simgrid, totals.wall.value());
  return text;
}

void list_topologies() {
  for (const experiments::Topology& topology : experiments::topologies())
    print("{:<13} {}\n", topology.name, topology.summary);
}

void run(const Options& options) {
  check_output_format(options.format);
  if (options.topologies == "help") {
    refuse_output_format(options.format, "--topology help prints a list for people");
    return list_topologies();
  }
  const experiments::AgreementRequest request = load_request(options);
  const auto start = std::chrono::steady_clock::now();
  Progress progress("timing schedules by every engine");
  const std::vector<AgreementCell> cells = experiments::compare_engines(request);
  progress.end();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  const experiments::AgreementTotals totals = experiments::totals(cells, Seconds{wall.count()});
  print_answer(options.format,
               {.document =
                    [&] {
                      return experiments::agreement_document().json({request, cells, totals});
                    },
                .records = {{"cells"}},
                .markdown = [&] { return table_of(cells).markdown(); },
                .text = [&](int width) { return to_text(request, cells, totals, width); },
                .wide = options.wide});
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
  add_wide_option(command, options->wide);
  add_output_formats(command, options->format);
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
