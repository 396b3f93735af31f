// paceline predict: the iteration time of every strategy.
#include <memory>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "cli/job/plan_file.h"
#include "cli/job/plan_timeline.h"
#include "cli/job/planned_job.h"
#include "cli/job/prediction_json.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/prediction_progress.h"
#include "cli/prediction_text.h"
#include "cli/report.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "models/base/json_records.h"

namespace paceline::cli {
namespace {

struct Options {
  simulator::Question question;
  std::string timeline;
  std::string plan_out;
  std::string html;
  bool sensitivity = false;
  bool wide = false;
  std::string top;
  bool provenance = false;
  OutputFormat format;
};

job::Job load(const Options& options) {
  job::Job job = job::load_job(options.question, {.is_of_one_size = true});
  if (!options.timeline.empty() && job.networks.size() > 1) {
    throw InputError({"--timeline"},
                     fmt::format("{} networks and one timeline", job.networks.size()),
                     "give one --model");
  }
  if (!options.plan_out.empty() && job.networks.size() > 1)
    throw InputError({"--plan-out"}, fmt::format("{} networks and one plan", job.networks.size()),
                     "give one --model");
  if (!options.html.empty() && job.networks.size() > 1)
    throw InputError({"--html"}, fmt::format("{} networks and one report", job.networks.size()),
                     "give one --model");
  return job;
}

// Writes the timeline of the fastest row, alone and into the report.
void write_timelines(const job::PredictionTable& table, const Options& options,
                     const Words& words) {
  if (options.timeline.empty() && options.html.empty()) return;
  const std::string timeline = job::best_timeline(table);
  if (!options.timeline.empty()) {
    job::write_output_file(options.timeline, timeline);
    notice("timeline of {} written to {}: open it in ui.perfetto.dev\n",
           table.rows[table.best()].name, options.timeline);
  }
  if (!options.html.empty())
    write_report(options.html, words,
                 fmt::format("{} on {}, {} ranks", table.network.work.name, table.job.cluster.name,
                             table.ranks),
                 {{"result", job::prediction_document().text(table)}, {"timeline", timeline}});
}

void run(const Options& options, const Words& words) {
  check_output_format(
      options.format,
      job::given_paths(options.question, {{"--timeline", options.timeline, job::FileKind::timeline},
                                          {"--plan-out", options.plan_out, job::FileKind::plan},
                                          {"--html", options.html, job::FileKind::report}}));
  const std::size_t top = parse_top(options.top);
  const job::Job job = load(options);
  const int ranks = ranks_of(job);
  const int width = options.wide ? unlimited_width : table_width();
  std::vector<job::PredictionTable> tables;
  for (const job::LoadedNetwork& network : job.networks) {
    PredictionProgress progress(job, network, ranks, width);
    tables.push_back(predict_table(job, network, ranks, progress.observer()));
    if (job.tries_layouts && !job.stragglers)
      tables.back().layouts = job::common_layouts(job, network, ranks);
    if (options.sensitivity) {
      progress.show("the best row on a cluster of which a part is better");
      add_sensitivity(tables.back());
    }
  }
  warn(all_warnings(tables));
  write_timelines(tables.front(), options, words);
  if (!options.plan_out.empty()) {
    const simulator::StrategyPrediction& row = tables.front().rows[tables.front().best()];
    job::write_plan(options.plan_out, job::plan_document(row.plan, job, job.networks.front().work));
    notice("plan of {} written to {}\n", row.name, options.plan_out);
  }
  const bool is_one = tables.size() == 1;
  const auto of_each = [&](const char* between, const auto& text_of) {
    std::string text;
    for (const job::PredictionTable& table : tables)
      text += (text.empty() ? "" : between) + text_of(table);
    return text;
  };
  print_answer(options.format,
               {.document =
                    [&] {
                      return is_one ? job::prediction_document().json(tables.front())
                                    : job::predictions_document().json(tables);
                    },
                .records = {is_one ? std::vector<std::string_view>{"strategies"}
                                   : std::vector<std::string_view>{"predictions", "strategies"},
                            {"model", "cluster", "ranks", "batch_per_rank", "precision"}},
                .markdown =
                    [&] {
                      return of_each("\n",
                                     [&](const auto& table) { return to_markdown(table, top); });
                    },
                .text =
                    [&](int columns) {
                      return of_each("\n\n", [&](const auto& table) {
                        return to_text(table, columns, top, options.provenance);
                      });
                    },
                .wide = options.wide});
}

}  // namespace

void add_predict(Command& app) {
  Command& command =
      app.add_command("predict", "Iteration time of every strategy, as a table or JSON");
  command.example("paceline predict --model resnet50 --cluster h200-ndr --ranks 64");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->question);
  add_field(command, options->question, "ignore-memory");
  add_size_options(command, options->question);
  add_straggler_options(command, options->question);
  command
      .add_option("--timeline", options->timeline,
                  "Write the fastest row's timeline as Chrome trace JSON, for Perfetto")
      .value("FILE")
      .in_group(output_group);
  add_field(command, options->question, "plan");
  command
      .add_option("--plan-out", options->plan_out,
                  "Write the plan of the fastest row as a document that --plan reads")
      .value("FILE")
      .in_group(output_group);
  add_field(command, options->question, "baseline");
  command
      .add_flag("--sensitivity", options->sensitivity,
                "Also say what better NICs, links or devices would gain")
      .in_group(simulator::question_group);
  add_field(command, options->question, "what-if");
  add_wide_option(command, options->wide);
  add_top_option(command, options->top);
  add_provenance_option(command, options->provenance);
  add_html_option(command, options->html);
  add_output_formats(command, options->format);
  command.on_run([options](const Words& words) { run(*options, words); });
}

}  // namespace paceline::cli
