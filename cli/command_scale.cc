// paceline scale: the scaling curve of every strategy.
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/job/plan_timeline.h"
#include "cli/job/prediction_json.h"
#include "cli/job/scaling.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/scaling_text.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "models/base/json_records.h"

namespace paceline::cli {
namespace {

struct Options {
  simulator::Question question;
  std::string measured;
  std::string html;
  bool wide = false;
  std::string top;
  bool provenance = false;
  OutputFormat format;
};

// Writes the curve, with the timeline of the most ranks.
void write_report_of(const std::vector<job::PredictionTable>& tables, const std::string& document,
                     const std::string& path, const Words& words) {
  const auto most = std::max_element(
      tables.begin(), tables.end(), [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
  const auto least = std::min_element(
      tables.begin(), tables.end(), [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
  write_report(path, words,
               fmt::format("{} on {}, {} to {} ranks", most->network.work.name,
                           most->job.cluster.name, least->ranks, most->ranks),
               {{"result", document}, {"timeline", job::best_timeline(*most)}});
}

void run(const Options& options, const Words& words) {
  check_output_format(
      options.format,
      job::given_paths(options.question, {{"--html", options.html, job::FileKind::report}}));
  const std::size_t top = parse_top(options.top);
  job::Job job = job::load_job(options.question);
  const int width = options.wide ? unlimited_width : table_width();
  const std::vector<int> ranks = job::parse_rank_range(options.question.ranks, job.cluster);
  const auto measured = job::parse_measured_throughputs(options.measured, job.cluster);
  Progress progress;
  const job::ScalingObserver observer{
      .begin =
          [&](const job::ScalingStep& step) {
            progress.show(fmt::format("{} ranks, {} ({} of {})", step.ranks, step.strategy.name,
                                      step.row + 1, step.rows),
                          step.share);
          },
      .point =
          [&](const std::vector<job::PredictionTable>& done) {
            progress.show_rows(points_text(job, done, width, top));
          }};
  const std::vector<job::PredictionTable> tables = scaling_curve(job, ranks, observer);
  progress.end();
  warn(all_warnings(tables));
  if (!options.html.empty())
    write_report_of(tables, job::scaling_document().text({tables, measured}), options.html, words);
  print_answer(
      options.format,
      {.document =
           [&] {
             return job::scaling_document().json({tables, measured});
           },
       .records = {{"points", "strategies"},
                   {"model", "cluster", "ranks", "batch_per_rank", "precision"}},
       .markdown = [&] { return points_markdown(job, tables, top); },
       .text =
           [&](int columns) { return curve_text(job, tables, columns, top, options.provenance); },
       .wide = options.wide});
}

}  // namespace

void add_scale(Command& app) {
  Command& command = app.add_command(
      "scale", "Throughput and efficiency over a range of ranks: the scaling curve");
  command.example("paceline scale --model resnet50 --cluster h200-ndr --ranks 8-1024");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->question);
  add_field(command, options->question, "ignore-memory");
  add_field(command, options->question, "ranks")
      .explained(
          "Numbers of ranks: 8,16,24 or 8-2048 (doubling); by default from 1 to all of the "
          "cluster")
      .value("LIST|RANGE");
  add_fields(command, options->question, {"baseline", "what-if"});
  add_wide_option(command, options->wide);
  add_top_option(command, options->top);
  add_provenance_option(command, options->provenance);
  add_measured_throughputs_option(command, options->measured);
  add_html_option(command, options->html);
  add_output_formats(command, options->format);
  command.on_run([options](const Words& words) { run(*options, words); });
}

}  // namespace paceline::cli
