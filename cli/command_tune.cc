// paceline tune: the best plan, what it gains, and how far from the best it can be.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/layout_tuning.h"
#include "cli/job/plan_file.h"
#include "cli/job/plan_timeline.h"
#include "cli/job/planned_job.h"
#include "cli/job/robust_tuning.h"
#include "cli/job/tuning.h"
#include "cli/layout_text.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/shared_options.h"
#include "cli/stop_signals.h"
#include "cli/table.h"
#include "cli/tuning_text.h"
#include "models/base/json_records.h"
#include "models/base/parse_units.h"
#include "simulator/question/question_fields.h"

namespace paceline::cli {
namespace {

struct Options {
  simulator::Question question;
  std::string plan_out;
  job::TuningOptions tuning;
  job::RobustOptions robust;
  std::string html;
  OutputFormat format;
  bool wide = false;
  std::string top;
  bool why = false;
  bool layouts = false;
};

// The options that say what a search over layouts looks for, or what it does not have.
void refuse_beside_layouts(const Options& options) {
  const std::array<std::pair<const char*, bool>, 6> others = {
      {{"--plan-out", !options.plan_out.empty()},
       {"--html", !options.html.empty()},
       {"--why", options.why},
       {"--robust", options.robust.robust},
       {"--runtime", !options.tuning.runtimes.empty()},
       {"--all-reduce", !options.tuning.all_reduces.empty()}}};
  for (const auto& [option, is_given] : others)
    if (is_given)
      throw InputError({option}, "a search over layouts does not have it",
                       "leave it or --layouts out");
  for (const std::string_view name : {"batch", "accumulate", "recompute", "strategy"})
    if (simulator::question_field(name).is_given(options.question))
      throw InputError({simulator::question_field(name).option()},
                       "a search over layouts chooses it", "leave it or --layouts out");
  if (options.question.layout != models::Layout{})
    throw InputError({"--layouts"}, "a layout is given, too", "leave --layouts or the layout out");
}

void run_layouts(const Options& options) {
  constexpr std::size_t usual = 5;
  refuse_beside_layouts(options);
  check_output_format(options.format, job::given_paths(options.question, {}));
  const std::size_t top = parse_top(options.top);
  const job::Job job = job::load_job(options.question);
  const Seconds limit = job::parse_time_limit(options.tuning.time_limit);
  remember_stop_signals();
  const auto start = std::chrono::steady_clock::now();
  const job::LayoutTuning tuning =
      job::layout_tuning(job, ranks_of(job), top == 0 ? usual : top, [&] {
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
        return spent.count() >= limit.value() || stop_asked() != runtime::StopReason::none;
      });
  print_answer(options.format, {.document = [&] { return job::layouts_document().json(tuning); },
                                .records = {{"layouts"}, {"model", "cluster", "ranks"}},
                                .markdown = [&] { return to_markdown(tuning); },
                                .text = [&](int width) { return to_text(tuning, width); },
                                .wide = options.wide});
  if (stop_asked() != runtime::StopReason::none) throw StoppedBySignal(stop_asked());
}

void run(const Options& options, const Words& words) {
  check_output_format(
      options.format,
      job::given_paths(options.question, {{"--plan-out", options.plan_out, job::FileKind::plan},
                                          {"--html", options.html, job::FileKind::report}}));
  const std::size_t top = parse_top(options.top);
  job::Job job = job::load_job(options.question, {.is_added_to = true});
  job::compare_with_others(job);
  job::leave_out_untimed(job);
  const int ranks = ranks_of(job);
  job.question = simulator::with_batches(std::move(job.question), ranks);
  const std::optional<job::AskedRobust> asked = take_robust(options.robust, job, ranks);
  const job::TuningTarget target = job::parse_target(options.tuning, job, asked.has_value());
  const Seconds limit = job::parse_time_limit(options.tuning.time_limit);
  const job::TuningTimes times = job::tuning_times(limit, options.why, asked.has_value());
  remember_stop_signals();
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [start] {
    return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  };
  const auto ends_at = [&elapsed](Seconds time) {
    return
        [&elapsed, time] { return elapsed() >= time || stop_asked() != runtime::StopReason::none; };
  };
  Progress progress(fmt::format("tuning for {} ranks", ranks));
  const job::TuningObserver observer{
      .table = {.begin =
                    [&](const models::Strategy& strategy, std::size_t done, std::size_t all) {
                      progress.show(fmt::format("{} ({} of {})", strategy.name, done + 1, all), 0);
                    }},
      .search =
          [&](const simulator::TuningProgress& found) {
            progress.show(
                fmt::format("best so far {}, {} plans", to_text(found.period), found.evaluated),
                limit > Seconds{0} ? std::min(1.0, elapsed() / limit) : 1);
          },
      .stop =
          [&](double share) {
            return elapsed() >= share * times.search || stop_asked() != runtime::StopReason::none;
          },
      .explain = options.why,
      .stop_explaining = ends_at(times.explanation)};
  const job::Tuning tuning = job::tune_job(job, ranks, target, observer);
  std::optional<job::RobustTuning> robust;
  if (asked) {
    progress.show("sampling states of the world", 0);
    robust = job::robust_tuning(tuning, *asked, target.all_reduces, ends_at(times.sampling));
  }
  progress.end();
  warn(tuning.table.warnings);
  if (!options.plan_out.empty()) {
    job::write_plan(options.plan_out,
                    job::plan_document(robust ? robust->chosen().plan : tuning.chosen(), job,
                                       job.networks.front().work));
    notice("plan written to {}: --plan of predict, train and replay takes it\n", options.plan_out);
  }
  const auto document = [&] {
    return job::tuning_document().json({tuning, robust ? &*robust : nullptr});
  };
  if (!options.html.empty()) {
    const models::Plan& plan = tuning.tuned.plan;
    write_report(options.html, words,
                 fmt::format("{} on {}, {} ranks, tuned", tuning.table.network.work.name,
                             job.cluster.name, ranks),
                 {{"result", document().indented()},
                  {"timeline", job::plan_timeline(tuning.table, plan, plan.strategy)}});
  }
  print_answer(options.format, {.document = document,
                                .records = {{"buckets"}, {"model", "cluster", "ranks"}},
                                .markdown = [&] { return to_markdown(tuning, options.why, top); },
                                .text =
                                    [&](int width) {
                                      return to_text(tuning, robust ? &*robust : nullptr,
                                                     options.why, width, top);
                                    },
                                .wide = options.wide});
  if (stop_asked() != runtime::StopReason::none) throw StoppedBySignal(stop_asked());
}

}  // namespace

void add_tune(Command& app) {
  Command& command = app.add_command(
      "tune", "The best plan: buckets, an all-reduce for each, what that gains, a lower bound");
  command.example(
      "paceline tune --model resnet50 --cluster h200-ndr --ranks 64 --plan-out plan.json");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->question);
  add_field(command, options->question, "ignore-memory");
  add_size_options(command, options->question);
  command
      .add_option("--plan-out", options->plan_out,
                  "Write the plan as a document that --plan of predict, train and replay reads")
      .value("FILE");
  add_tuning_options(command, options->tuning, options->why);
  add_robust_options(command, options->robust);
  add_html_option(command, options->html);
  add_output_formats(command, options->format);
  add_wide_option(command, options->wide);
  add_top_option(command, options->top);
  command
      .add_flag(
          "--layouts", options->layouts,
          "Search layouts of the ranks, too: tensor, context and pipeline parallelism, batches, "
          "recomputation and sharding, for --global-batch samples an iteration")
      .in_group(simulator::layout_group);
  command.on_run([options](const Words& words) {
    options->layouts ? run_layouts(*options) : run(*options, words);
  });
}

}  // namespace paceline::cli
