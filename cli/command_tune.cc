// paceline tune: the best plan, what it gains, and how far from the best it can be.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "cli/job/plan_file.h"
#include "cli/job/plan_timeline.h"
#include "cli/job/robust_tuning.h"
#include "cli/job/tuning.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/prediction_text.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/shared_options.h"
#include "cli/stop_signals.h"
#include "cli/table.h"
#include "cli/why_text.h"
#include "models/base/json_records.h"
#include "models/base/parse_units.h"
#include "models/cluster/placement.h"
#include "models/plan/tuned.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::cli {
namespace {

constexpr const char* default_limit = "10 s";
// To say what is next best, beyond the time limit.
constexpr Seconds most_explained{10};
// Buckets that are listed of many: the first, and the last, which no computation hides.
constexpr std::size_t first_listed = 12;
constexpr std::size_t last_listed = 8;

struct Options {
  job::JobOptions job;
  std::string plan_out;
  std::string all_reduces;
  std::string time_limit = default_limit;
  std::string html;
  OutputFormat format;
  bool wide = false;
  bool why = false;
  bool robust = false;
  std::string runtime;
  std::string seed;
};

std::string summary_text(const job::Tuning& tuning) {
  const simulator::TunedPlan& tuned = tuning.tuned;
  const std::size_t buckets = tuned.plan.buckets.size();
  std::string text = fmt::format(
      "{} on {}: {} ranks, batch {} per rank, {} precision, {} on the wire\n\n",
      tuning.table.network.work.name, tuning.table.job.cluster.name, tuning.table.ranks,
      tuning.table.job.batch_per_rank, name(tuning.table.job.precision), name(tuned.plan.wire));
  text += fmt::format(
      "the best plan: iteration {} (predicted), {} bucket{}{}\n", to_text(tuned.period), buckets,
      buckets == 1 ? "" : "s",
      tuned.plan.strategy == "tuned" ? "" : fmt::format(", that of {}", tuned.plan.strategy));
  if (tuned.is_optimal)
    text += fmt::format(
        "  proven: no contiguous buckets with any of {} all-reduces are faster in one stream\n",
        tuned.candidates);
  else
    text += fmt::format(
        "  lower bound: {}, so that no plan{} is faster by more than {}\n  not proven to be the "
        "best: {}\n",
        to_text(tuned.least_period), tuned.plan.streams > 1 ? "" : " of one stream",
        percent(1 - tuned.least_period / tuned.period), tuned.why_not);
  if (tuning.by_thresholds) {
    const simulator::StrategyPrediction& row = tuning.table.rows[*tuning.by_thresholds];
    text += fmt::format("  the best by thresholds: {}, {}; that they are thresholds costs {}\n",
                        row.name, to_text(row.iteration.value), percent(tuning.gain_over(row)));
  }
  std::vector<std::string> defaults;
  for (const job::RuntimeDefaults& its : job::runtime_defaults(tuning)) {
    const simulator::StrategyPrediction& row = tuning.table.rows[its.row];
    const double gain = tuning.gain_over(row);
    defaults.push_back(fmt::format("{}'s take {} {} ({}, {})", its.runtime, percent(std::abs(gain)),
                                   gain < 0 ? "less" : "longer", row.name,
                                   to_text(row.iteration.value)));
  }
  if (!defaults.empty()) text += fmt::format("  defaults: {}\n", fmt::join(defaults, ", "));
  text += help_text(tuning);
  if (!tuned.left_out.empty()) {
    text += fmt::format(
        "  not tried, for they have too many messages: {}{}\n", tuned.left_out.front(),
        tuned.left_out.size() == 1 ? "" : fmt::format(" and {} more", tuned.left_out.size() - 1));
  }
  if (!tuned.is_complete) text += "  the search was stopped: more time may find a better plan\n";
  return text + "\n";
}

Table buckets_table(const job::Tuning& tuning) {
  const models::Plan& plan = tuning.tuned.plan;
  const models::NetworkWork& network = tuning.table.network.work;
  Table table({{"bucket"},
               {"gradients"},
               {"first", Align::left, 4},
               {"size"},
               {"all-reduce", Align::left},
               {"ready", Align::right, 2},
               {"starts", Align::right, 3},
               {"ends", Align::right, 1},
               {"exposed"},
               {"next best", Align::left},
               {"loses"}});
  for (std::size_t i = 0; i < plan.buckets.size(); ++i) {
    const models::Bucket& bucket = plan.buckets[i];
    const simulator::BucketTravel& times = tuning.travel.buckets[i];
    const NextBest other = next_best(tuning, i);
    table.add({fmt::format("{}", i), fmt::format("{}", bucket.gradient_count),
               network.gradients[static_cast<std::size_t>(bucket.first_gradient)].name,
               to_text(plan.bytes(bucket)),
               models::described(plan.schedules[static_cast<std::size_t>(bucket.schedule)]),
               to_text(times.ready), to_text(times.start), to_text(times.end),
               to_text(times.exposed), other.change, other.loses});
  }
  return table;
}

// In the terminal's width, and without the buckets in the middle where there are many.
std::string buckets_text(const job::Tuning& tuning, bool wide) {
  Table table = buckets_table(tuning);
  const std::size_t left_out = wide ? 0 : table.leave_out_middle(first_listed, last_listed);
  const Table::Fitted fitted = table.fitted(wide ? unlimited_width : table_width());
  return fitted.text +
         (left_out == 0 ? ""
                        : fmt::format("{} buckets are not listed (--wide lists all)\n", left_out)) +
         fitted.not_shown();
}

Table strategies_table(const job::Tuning& tuning) {
  Table table({{"strategy", Align::left}, {"wire", Align::left}, {"iteration"}, {"longer by"}});
  for (const simulator::StrategyPrediction& row : tuning.table.rows)
    table.add({row.name, std::string(name(row.plan.wire)), to_text(row.iteration.value),
               signed_percent(tuning.gain_over(row))});
  return table;
}

std::string strategies_text(const job::Tuning& tuning) {
  return strategies_table(tuning).text() + "\n" + haste_note({&tuning.table, 1}) +
         library_note(tuning.table) + setting_text(tuning.table.job) +
         "All times are predicted. `paceline predict` says what "
         "they rest on.\n";
}

// PyTorch DDP's process group is NCCL's where there are GPUs, and Gloo's elsewhere.
std::string default_runtime(const job::Job& job) {
  return simulator::is_gpu(job.cluster.device) ? "ddp" : "ddp-ring";
}

// What the robust plan is compared with; null where no robust plan is asked for.
const models::Strategy* take_robust(const Options& options, job::Job& job) {
  if (!options.robust) {
    for (const auto& [option, text] :
         {std::pair{"--default", options.runtime}, std::pair{"--seed", options.seed}})
      if (!text.empty())
        throw InputError({option}, "nothing is sampled", "give --robust, too, or leave it out");
    return nullptr;
  }
  if (!options.seed.empty()) {
    constexpr std::int64_t most_seed = std::int64_t{1} << 53;  // that JSON holds exactly
    job.sampling_seed = static_cast<std::uint64_t>(
        job::parsing_option("--seed", [&] { return parse_count(options.seed, 0, most_seed); }));
  }
  return &job::parsing_option("--default", [&]() -> const models::Strategy& {
    const models::Strategy& runtime =
        models::strategy(options.runtime.empty() ? default_runtime(job) : options.runtime);
    if (models::is_tuned(runtime))
      throw InputError("tuned is no runtime's default", "name a strategy, such as ddp");
    return runtime;
  });
}

void run(const Options& options, const Words& words) {
  check_output_format(options.format);
  job::Job job = load_job(options.job);
  job::compare_with_others(job);
  job::leave_out_untimed(job);
  const models::Strategy* runtime = take_robust(options, job);
  const int ranks = ranks_of(options.job, job);
  check_outputs_of(options.job, {{"--plan-out", options.plan_out}, {"--html", options.html}});
  const std::vector<std::string> all_reduces = job::parse_all_reduces(options.all_reduces);
  const Seconds limit =
      job::parsing_option("--time-limit", [&] { return parse_seconds(options.time_limit); });
  remember_stop_signals();
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [start] {
    return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
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
      .stop = [&] { return elapsed() >= limit || stop_asked() != runtime::StopReason::none; },
      .stop_explaining =
          [&] {
            return elapsed() >= limit + most_explained || stop_asked() != runtime::StopReason::none;
          }};
  const job::Tuning tuning = job::tune_job(job, ranks, all_reduces, observer);
  std::optional<job::RobustTuning> robust;
  if (runtime != nullptr) {
    const Seconds begun = elapsed();
    progress.show("sampling", 1);
    robust = job::robust_tuning(tuning, *runtime, all_reduces, [&] {
      return elapsed() - begun >= limit || stop_asked() != runtime::StopReason::none;
    });
  }
  progress.end();
  warn(tuning.table.warnings);
  if (!options.plan_out.empty()) {
    job::write_plan(options.plan_out, robust ? robust->chosen().plan : tuning.tuned.plan,
                    job.networks.front().work);
    notice("plan written to {}: --plan of predict, train and replay takes it\n", options.plan_out);
  }
  if (!options.html.empty()) {
    const models::Plan& plan = tuning.tuned.plan;
    write_report(options.html, words,
                 fmt::format("{} on {}, {} ranks, tuned", tuning.table.network.work.name,
                             job.cluster.name, ranks),
                 {{"result", to_json(tuning, robust ? to_json(*robust) : Json(nullptr))},
                  {"timeline", job::plan_timeline(tuning.table, plan, plan.strategy)}});
  }
  if (options.format.json) {
    print("{}\n", to_json(tuning, robust ? to_json(*robust) : Json(nullptr)));
  } else if (options.format.csv) {
    print("{}", csv_records(to_json(tuning, nullptr), {"buckets"}, {"model", "cluster", "ranks"}));
  } else if (options.format.markdown) {
    print("{}\n{}", buckets_table(tuning).markdown(), strategies_table(tuning).markdown());
  } else {
    print("{}{}\n{}{}{}", summary_text(tuning), buckets_text(tuning, options.wide),
          options.why ? why_text(tuning) : "", robust ? robust_text(*robust) : "",
          strategies_text(tuning));
  }
  if (stop_asked() != runtime::StopReason::none) throw StoppedBySignal(stop_asked());
}

}  // namespace

void add_tune(Command& app) {
  Command& command = app.add_command(
      "tune", "The best plan: buckets, an all-reduce for each, what that gains, a lower bound");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->job);
  command.add_option("--ranks", options->job.ranks, "Number of ranks (GPUs, or CPU processes)")
      .value("N");
  command
      .add_option("--plan-out", options->plan_out,
                  "Write the plan as a document that --plan of predict, train and replay reads")
      .value("FILE");
  command
      .add_option(
          "--all-reduce", options->all_reduces,
          "All-reduces that a bucket may take, as those of the runtime that the plan is for "
          "(paceline show schedules)")
      .value("NAME,... (all)");
  command
      .add_option(
          "--time-limit", options->time_limit,
          "How long to search where the best plan is not proven, and to sample; Ctrl-C stops "
          "it, too")
      .value(fmt::format("TIME ({})", default_limit));
  add_html_option(command, options->html);
  add_output_formats(command, options->format);
  add_wide_option(command, options->wide);
  command.add_flag("--why", options->why,
                   "Also list what each bucket would lose by every other choice that was tried");
  command.add_flag("--robust", options->robust,
                   "Choose by the 95th percentile over sampled states of the world, and keep the "
                   "runtime's default where the gain over it is not certain");
  command.add_option("--default", options->runtime, "The strategy that the runtime has by itself")
      .value("NAME (ddp)");
  command.add_option("--seed", options->seed, "Seed of the sampled states")
      .value(fmt::format("N ({})", simulator::sampling_seed));
  command.on_run([options](const Words& words) { run(*options, words); });
}

}  // namespace paceline::cli
