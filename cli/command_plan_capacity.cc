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
#include "cli/planning_options.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "cli/table.h"
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
  add_capacity_options(command, options->capacity);
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
