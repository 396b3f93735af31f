// paceline cost: the time to train, and what a training run uses up.
#include <memory>

#include "cli/command.h"
#include "cli/cost_text.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "cli/training_run_options.h"
#include "models/base/json_records.h"

namespace paceline::cli {
namespace {

struct Options {
  simulator::Question question;
  job::TrainingRunOptions run;
  bool wide = false;
  std::string top;
  OutputFormat format;
};

void run(const Options& options) {
  check_output_format(options.format, job::given_paths(options.question));
  const std::size_t top = parse_top(options.top);
  Progress progress;
  const job::CostTable table = job::cost_table(
      options.question, options.run,
      {.observer = [&](const std::string& phase, const models::Strategy& strategy, double share) {
        progress.show(fmt::format("{}, {}", phase, strategy.name), share);
      }});
  warn(table.warnings);
  print_answer(options.format, {.document = [&] { return job::cost_document().json(table); },
                                .records = {{"strategies"}, {"model", "cluster", "ranks"}},
                                .markdown = [&] { return to_markdown(table, top); },
                                .text = [&](int width) { return to_text(table, width, top); },
                                .wide = options.wide});
}

}  // namespace

void add_cost(Command& app) {
  Command& command = app.add_command(
      "cost", "Time to train: minutes, GPU-hours, dollars and kWh of a training run");
  command.example(
      "paceline cost --model resnet50 --cluster h200-ndr --ranks 64 --epochs 90 --dataset "
      "imagenet");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->question);
  add_field(command, options->question, "ignore-memory");
  add_size_options(command, options->question);
  add_training_run_options(command, options->run);
  add_node_price_option(command, options->run);
  add_node_power_option(command, options->run);
  add_field(command, options->question, "plan");
  add_wide_option(command, options->wide);
  add_top_option(command, options->top);
  add_output_formats(command, options->format);
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
