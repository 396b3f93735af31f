// paceline compare: a measured run beside its prediction, task by task; and how long it would take if
// something about it were different.
#include <fmt/core.h>

#include "calibration/compare/comparison.h"
#include "calibration/compare/same_job.h"
#include "cli/command.h"
#include "cli/comparison_text.h"
#include "cli/job/deviation_limit.h"
#include "cli/job/files.h"
#include "cli/job/plan_file.h"
#include "cli/job/timeline_file.h"
#include "cli/job/what_if.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/prediction_text.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "cli/what_if_text.h"
#include "models/base/error.h"
#include "models/base/json_records.h"
#include "models/base/parse_units.h"
#include "simulator/question/question_fields.h"

namespace paceline::cli {
namespace {

struct Options {
  calibration::ComparedFiles files;
  std::string merged;
  std::string html;
  std::string fail_slower;
  job::WhatIfOptions what_if;
  bool layers = false;
  bool wide = false;
  OutputFormat format;
};

// The largest share that --fail-slower takes.
constexpr double most_slower = 10;

// Answers the questions of --what-if.
void run_what_if(const Options& options) {
  const job::WhatIfOptions& what_if = options.what_if;
  const std::vector<std::pair<const char*, bool>> others = {
      {"PREDICTION", !options.files.prediction.empty()},
      {"--merged", !options.merged.empty()},
      {"--html", !options.html.empty()},
      {"--fail-slower", !options.fail_slower.empty()},
      {"--layers", options.layers}};
  for (const auto& [name, is_given] : others) {
    if (is_given)
      throw InputError({name}, "--what-if asks about the run alone", "leave one of the two out");
  }
  Progress progress("reading the timeline");
  const calibration::WhatIfAnswers answers = job::answer(options.files.run, what_if);
  progress.end();
  print_answer(options.format,
               {.document = [&] { return calibration::what_if_document().json(answers); },
                .records = {{"answers"}},
                .markdown = [&] { return answers_table(answers).markdown(); },
                .text = [&](int) { return to_text(answers); },
                .wide = options.wide});
}

// Refuses what only --what-if takes.
void check_compared(const Options& options) {
  for (const char* const name :
       {"model", "cluster", "placement", "profile", "sequence", "scale-gradients"}) {
    const auto& field = simulator::question_field(name);
    if (field.is_given(options.what_if.job))
      throw InputError({field.option()}, "a comparison predicts nothing",
                       "leave it out, or ask something with --what-if");
  }
  if (options.files.prediction.empty())
    throw InputError("PREDICTION is missing",
                     "give the --timeline of paceline predict, or ask something with --what-if");
}

// Writes both timelines, alone and into the report.
void write_timelines(const models::TracedTimeline& measured,
                     const models::TracedTimeline& predicted,
                     const calibration::Comparison& comparison, const Options& options,
                     const Words& words) {
  if (options.merged.empty() && options.html.empty()) return;
  const std::string both = models::chrome_trace(calibration::side_by_side(measured, predicted));
  if (!options.merged.empty()) {
    job::write_output_file(options.merged, both);
    notice("both timelines written to {}: open it in ui.perfetto.dev\n", options.merged);
  }
  if (!options.html.empty())
    write_report(options.html, words,
                 fmt::format("{} on {} ranks, measured and predicted", comparison.job.network,
                             comparison.job.ranks),
                 {{"result", calibration::comparison_document().text({comparison, options.files})},
                  {"timeline", both}});
}

// Refuses an interval that the prediction does not say.
void check_limit(const std::optional<job::DeviationLimit>& limit,
                 const models::TracedTimeline& predicted, const std::string& file) {
  if (limit && !limit->share && !predicted.timeline.interval)
    throw InputError({file}, "it does not say the interval of its iteration",
                     "write it again with paceline predict --timeline, or give --fail-slower a "
                     "share such as 10%");
}

// Throws RunError where the run's iteration is slower than the limit allows.
void judge(const calibration::Comparison& comparison, const job::DeviationLimit& limit) {
  const Seconds measured = comparison.iteration.run.median;
  const Seconds predicted = comparison.iteration.prediction.median;
  const Seconds most = limit.share ? (1 + *limit.share) * predicted : comparison.interval->high;
  if (measured <= most) return;
  const std::string found =
      fmt::format("it took {}, {} longer than the predicted {}", to_text(measured),
                  percent(measured / predicted - 1), to_text(predicted));
  if (limit.share)
    throw RunError(
        fmt::format("hold the iteration to {:.4g} % above its prediction", 100 * *limit.share),
        found);
  throw RunError("hold the iteration to the interval of its prediction",
                 fmt::format("{}, whose interval ends at {}", found, to_text(most)));
}

void run(const Options& options, const Words& words) {
  std::vector<job::GivenPath> paths =
      job::given_paths(options.what_if.job, {{"--merged", options.merged, job::FileKind::timeline},
                                             {"--html", options.html, job::FileKind::report}});
  paths.insert(paths.end(), {{"RUN", options.files.run, job::PathUse::input},
                             {"PREDICTION", options.files.prediction, job::PathUse::input}});
  check_output_format(options.format, std::move(paths));
  if (!options.what_if.questions.empty()) return run_what_if(options);
  check_compared(options);
  const std::optional<job::DeviationLimit> limit =
      job::parse_deviation_limit("--fail-slower", options.fail_slower, 0, most_slower);
  Progress progress("reading both timelines");
  const models::TracedTimeline measured = job::read_timeline(options.files.run);
  const models::TracedTimeline predicted = job::read_timeline(options.files.prediction);
  if (!options.what_if.job.plan.empty()) {
    const models::PlanDocument plan = job::read_plan(options.what_if.job.plan);
    calibration::check_follows(measured.job, options.files.run, plan);
    calibration::check_follows(predicted.job, options.files.prediction, plan);
  }
  const calibration::Comparison comparison = calibration::compare(measured, predicted);
  check_limit(limit, predicted, options.files.prediction);
  progress.end();
  write_timelines(measured, predicted, comparison, options, words);
  print_answer(
      options.format,
      {.document =
           [&] {
             return calibration::comparison_document().json({comparison, options.files});
           },
       .records = {{"parts"}},
       .markdown = [&] { return to_markdown(tables(comparison, options.layers)); },
       .text = [&](int width) { return to_text(comparison, options.files, options.layers, width); },
       .wide = options.wide});
  if (!limit) return;
  flush_output();
  judge(comparison, *limit);
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
      .add_option(
          "prediction", options->files.prediction,
          "Timeline of its prediction (paceline predict --strategy ... --timeline); none with "
          "--what-if")
      .value("PREDICTION");
  add_question_options(command, options->what_if);
  command
      .add_option("--merged", options->merged,
                  "Write both as one Chrome trace, moved so that an iteration of each starts at "
                  "the same time (opens in Perfetto)")
      .value("FILE");
  command.add_flag("--layers", options->layers,
                   "Also a row for each layer, and all buckets' casts (--json has them)");
  command
      .add_option("--fail-slower", options->fail_slower,
                  "Exit with 1 where the run's iteration takes longer than predicted by more than "
                  "this share, or longer than the interval of the prediction")
      .value("SHARE|interval");
  add_wide_option(command, options->wide);
  add_html_option(command, options->html);
  add_output_formats(command, options->format);
  command.on_run([options](const Words& words) { run(*options, words); });
}

}  // namespace paceline::cli
