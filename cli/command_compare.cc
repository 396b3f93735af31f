// paceline compare: a measured run beside its prediction, task by task.
#include <fmt/core.h>

#include "calibration/compare/comparison.h"
#include "calibration/compare/same_job.h"
#include "cli/command.h"
#include "cli/comparison_text.h"
#include "cli/job/files.h"
#include "cli/job/plan_file.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "models/base/error.h"

namespace paceline::cli {
namespace {

struct Options {
  calibration::ComparedFiles files;
  std::string merged;
  std::string plan;
  bool layers = false;
  bool json = false;
};

models::TracedTimeline load_timeline(const std::string& path) {
  std::vector<models::TracedTimeline> timelines =
      models::parse_chrome_trace(job::read_input_file(path), path);
  if (timelines.size() != 1)
    throw InputError({path}, fmt::format("it holds {} timelines", timelines.size()),
                     "give a file of one: of a run, or of a prediction");
  return std::move(timelines.front());
}

void run(const Options& options) {
  job::check_paths({{"--merged", options.merged, job::PathUse::output},
                    {"--plan", options.plan, job::PathUse::input},
                    {"RUN", options.files.run, job::PathUse::input},
                    {"PREDICTION", options.files.prediction, job::PathUse::input}});
  Progress progress("reading both timelines");
  const models::TracedTimeline measured = load_timeline(options.files.run);
  const models::TracedTimeline predicted = load_timeline(options.files.prediction);
  if (!options.plan.empty()) {
    const models::PlanDocument plan = job::read_plan(options.plan);
    calibration::check_follows(measured.job, options.files.run, plan);
    calibration::check_follows(predicted.job, options.files.prediction, plan);
  }
  const calibration::Comparison comparison = calibration::compare(measured, predicted);
  progress.end();
  if (!options.merged.empty()) {
    job::write_output_file(options.merged,
                           models::chrome_trace(calibration::side_by_side(measured, predicted)));
    notice("both timelines written to {}: open it in ui.perfetto.dev\n", options.merged);
  }
  if (options.json)
    print("{}\n", to_json(comparison, options.files));
  else
    print("{}", to_text(comparison, options.files, options.layers));
}

}  // namespace

void add_compare(Command& app) {
  Command& command = app.add_command(
      "compare", "A measured run beside its prediction: where they differ, task by task");
  const auto options = std::make_shared<Options>();
  command
      .add_option("run", options->files.run,
                  "Timeline of a run (paceline train or replay --timeline)")
      .required()
      .value("RUN");
  command
      .add_option("prediction", options->files.prediction,
                  "Timeline of its prediction (paceline predict --strategy ... --timeline)")
      .required()
      .value("PREDICTION");
  command
      .add_option("--plan", options->plan,
                  "The plan that both are of (predict --plan-out): a run or a prediction that "
                  "followed another one is refused")
      .value("FILE");
  command
      .add_option("--merged", options->merged,
                  "Write both as one Chrome trace, moved so that an iteration of each starts at "
                  "the same time (opens in Perfetto)")
      .value("FILE");
  command.add_flag("--layers", options->layers,
                   "Also a row for each layer, and all buckets' casts (--json has them)");
  command.add_flag("--json", options->json, "Print one JSON document");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
