// paceline plan-capacity: which cluster to buy or to rent for a training run.
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cli/capacity_text.h"
#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "cli/training_run_options.h"
#include "models/base/error.h"

namespace paceline::cli {
namespace {

struct Options {
  job::CapacityOptions capacity;
  std::string plot;
  bool wide = false;
  std::string top;
  OutputFormat format;
};

void check(const Options& options) {
  const job::CapacityOptions& capacity = options.capacity;
  job::require_option(capacity.common.networks.empty() ? "" : capacity.common.networks.front(),
                      "--model", "resnet50");
  job::require_option(capacity.clusters, "--cluster", "aws-p3-16xlarge,sony-abci");
  std::vector<job::GivenPath> paths =
      job::given_paths(capacity.common, {{"--plot", options.plot, job::FileKind::picture}});
  // Each cluster of the list may be a file.
  for (const std::string& cluster :
       job::parsing_option("--cluster", [&] { return job::comma_list(capacity.clusters); }))
    paths.push_back({"--cluster", cluster, job::PathUse::name_or_input});
  check_output_format(options.format, std::move(paths));
}

void run(const Options& options) {
  check(options);
  const std::size_t top = parse_top(options.top);
  Progress progress;
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const job::Capacity capacity =
      job::capacity(options.capacity, threads,
                    [&](const std::string& what, double share) { progress.show(what, share); });
  progress.end();
  if (!options.plot.empty()) {
    if (capacity.front.empty())
      throw InputError({"--plot"}, "nothing says what a node costs, so that there is no front",
                       "add --node-price CLUSTER=PRICE");
    job::write_output_file(options.plot, to_svg(capacity));
  }
  warn(capacity.warnings);
  print_answer(options.format, {.document = [&] { return job::capacity_document().json(capacity); },
                                .csv = [&] { return to_csv(capacity); },
                                .markdown = [&] { return to_markdown(capacity, top); },
                                .text = [&](int width) { return to_text(capacity, width, top); },
                                .wide = options.wide});
  if (!capacity.demand.asks_anything() || capacity.answer) return;
  flush_output();
  throw RunError(fmt::format("find the {}", asked_text(capacity)),
                 capacity.nearest ? "no candidate is; the nearest is " + nearest_text(capacity)
                                  : std::string("no candidate is"));
}

}  // namespace

void add_plan_capacity(Command& app) {
  Command& command = app.add_command(
      "plan-capacity",
      "Which cluster to buy or rent: the cheapest that trains in time, the fastest for a budget");
  command.example(
      "paceline plan-capacity --model resnet50 --cluster aws-p3-16xlarge,sony-abci --epochs 90 "
      "--dataset imagenet --within 2h");
  const auto options = std::make_shared<Options>();
  job::CapacityOptions& capacity = options->capacity;
  add_field(command, capacity.common, "model")
      .explained("Network: a name of the zoo (paceline show catalog) or a YAML file");
  command
      .add_option("--cluster", capacity.clusters,
                  "Clusters to compare, by commas: names of the catalogue or YAML files")
      .value("NAME|FILE,...");
  command
      .add_option(
          "--nic", capacity.nics,
          "NICs of a node to compare, by commas: the cluster's own, links of the catalogue, "
          "several of one, or what a message gets of each")
      .value("own|LINK|COUNTxLINK|BANDWIDTH,... (own)");
  command
      .add_option("--nodes", capacity.nodes,
                  "Numbers of full nodes to compare: 1,2,4 or 1-64 (doubling) or 1-64:1 (each); by "
                  "default 1, 2, 3, 4, 6, 8, 12, ... up to all, or to 1,024 ranks")
      .value("LIST|RANGE");
  command.add_option("--ranks", capacity.ranks, "Numbers of ranks to compare, in place of --nodes")
      .value("LIST|RANGE");
  command
      .add_option("--batch", capacity.batch,
                  "Samples per rank and iteration, the same on all candidates")
      .value("N (64)");
  command
      .add_option("--global-batch", capacity.global_batch,
                  "Samples of all ranks in an iteration, the same on all candidates, in place of "
                  "--batch")
      .value("N");
  command
      .add_option("--accumulate", capacity.accumulate,
                  "Batches of a rank whose gradients are added up before they travel; auto: the "
                  "batch is cut into the fewest equal parts that fit into memory")
      .value("K|auto (1)");
  command
      .add_option("--within", capacity.within,
                  "Ask for the cheapest candidate that trains in this time, as in 12h or '3 days'")
      .value("TIME");
  command
      .add_option("--budget", capacity.budget,
                  "Ask for the fastest candidate that costs at most so much; beside --within, for "
                  "the cheapest that does both")
      .value("USD");
  command
      .add_option(
          "--efficiency", capacity.efficiency,
          "Ask for candidates of at least this efficiency, for where efficiency falls below "
          "it, and for the NIC bandwidth that it takes")
      .value("SHARE");
  command.add_flag("--cautious", capacity.cautious,
                   "Limits hold at the bad end of each 90 % interval, too");
  add_training_run_options(command, capacity.run);
  command
      .add_option("--node-price", capacity.run.node_price,
                  "Price of a node in place of the cluster's, one for all or CLUSTER=PRICE by "
                  "commas: '24.48 USD/h', or an offer of the catalogue such as aws-p5-48xlarge")
      .value("PRICE|NAME|CLUSTER=PRICE,...");
  add_node_power_option(command, capacity.run);
  add_field(command, capacity.common, "strategy")
      .explained(
          "Strategies by commas, of which each candidate has the fastest; by default all but "
          "parameter-server and direct-exchange, which take a second a candidate to follow")
      .value("NAME,...|all");
  add_field(command, capacity.common, "placement");
  add_prediction_options(command, capacity.common);
  add_field(command, capacity.common, "ignore-memory");
  command.add_option("--plot", options->plot, "Draw time against cost of all candidates (SVG)")
      .value("FILE");
  add_wide_option(command, options->wide);
  add_top_option(command, options->top,
                 "Print N candidates: the answer, then the cheapest where the cheapest is asked "
                 "for, else the fastest; --json and --csv have all");
  add_output_formats(command, options->format);
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
