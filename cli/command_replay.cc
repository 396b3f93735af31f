// paceline replay: run plans with synthetic compute, and set what was measured beside what was
// predicted.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "calibration/fit/statistics.h"
#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "cli/job/plan_file.h"
#include "cli/job/ranks.h"
#include "cli/job/replay.h"
#include "cli/job/run_times.h"
#include "cli/job/stragglers.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/prediction_notes.h"
#include "cli/prediction_text.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "models/base/json_records.h"
#include "models/base/parse_units.h"
#include "models/timeline/timeline.h"
#include "runtime/channel/mpi_job.h"
#include "runtime/channel/rank_threads.h"

namespace paceline::cli {
namespace {

constexpr int most_iterations = 100'000;

struct Options {
  simulator::Question question;
  std::string iterations = "5";
  std::string warm_up = "1";
  std::string patience = job::default_patience;
  std::string timeline;
  std::string slow_ranks;
  bool wide = false;
  OutputFormat format;
};

std::string title_text(const job::Job& job, const job::PredictionTable& table,
                       std::string_view transport, const Options& options) {
  std::string text = fmt::format(
      "{} on {}, {} ranks ({}), batch {} per rank, {}: replay with synthetic compute, {} "
      "iterations "
      "after {}\n",
      table.network.work.name, job.cluster.name, table.ranks, transport,
      job.question.batch_per_rank, name(job.question.precision), options.iterations,
      options.warm_up);
  const bool has_cycles =
      std::any_of(table.rows.begin(), table.rows.end(),
                  [](const simulator::StrategyPrediction& row) { return row.plan.only_waits(); });
  if (has_cycles)
    text += "what ranks agree on before a cycle is left out, of the run and of its prediction\n";
  return text + setting_text(job) + "\n";
}

Table table_of(const job::PredictionTable& table, const std::vector<job::ReplayRun>& results) {
  Table rows({{"strategy"},
              {"wire"},
              {"measured", Align::right},
              {"min - max", Align::right, 3},
              {"exposed", Align::right, 1},
              {"predicted", Align::right},
              {"low - high", Align::right, 2},
              {"error", Align::right},
              {"buckets", Align::right, 4},
              {"by", Align::right, 5}});
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& [plan, outcome] = results[i];
    const simulator::StrategyPrediction& predicted = table.rows[i];
    const Seconds measured = calibration::typical_iteration(outcome.iterations);
    const auto [low, high] =
        std::minmax_element(outcome.iterations.begin(), outcome.iterations.end());
    rows.add({plan.strategy, std::string(name(plan.wire)), to_text(measured),
              fmt::format("{} - {}", to_text(*low), to_text(*high)),
              to_text(calibration::median(outcome.exposed)), to_text(predicted.iteration.value),
              fmt::format("{} - {}", to_text(predicted.iteration.low),
                          to_text(predicted.iteration.high)),
              signed_percent(predicted.iteration.value / measured - 1),
              fmt::format("{}", plan.buckets.size()), predicted.timed_by});
  }
  return rows;
}

std::string to_text(const job::Job& job, const job::PredictionTable& table,
                    const std::vector<job::ReplayRun>& results, std::string_view transport,
                    const Options& options, int width) {
  const Table::Fitted rows = table_of(table, results).fitted(width);
  return fmt::format(
      "{}{}{}\nMeasured on rank 0: the median over every two iterations in a row, the least and "
      "the "
      "most of one, exposed communication.\nPredicted before the run: the time of an iteration and "
      "its "
      "interval, low - high. error: predicted against measured.\nPredictions rest on:\n  {:<18} "
      "{}\n{}",
      title_text(job, table, transport, options), rows.text, rows.not_shown(), "compute",
      table.rows.front().compute_source, basis_text(job));
}

void report(const job::Job& job, const job::PredictionTable& table,
            const std::vector<job::ReplayRun>& results, std::string_view transport,
            const Options& options) {
  print_answer(
      options.format,
      {.document =
           [&] {
             return job::replay_document().json({table, results, transport});
           },
       .records = {{"strategies"}, {"model", "cluster", "ranks"}},
       .markdown = [&] { return table_of(table, results).markdown(); },
       .text = [&](int width) { return to_text(job, table, results, transport, options, width); },
       .wide = options.wide});
}

// Rank 0 writes its own timeline, with the times of all ranks, which all bring to it.
void write_timeline(const Options& options, const job::Job& job, const models::Plan& plan,
                    const runtime::Endpoint& endpoint, const runtime::Recorder& recorder) {
  const models::NetworkWork& network = job.networks.front().work;
  const int rank = endpoint.channel.rank();
  const std::string title =
      fmt::format("{} on {}, rank 0 of {}, {}, {} on the wire; synthetic compute", network.name,
                  job.cluster.name, plan.ranks, plan.strategy, name(plan.wire));
  models::TracedTimeline traced{models::traced_job(network, plan), recorder.timeline(title, rank)};
  traced.timeline.batch_per_rank = job.question.batch_per_rank;
  const models::RunTimes times = job::gather_run_times(endpoint.channel, traced);
  if (rank != 0) return;
  job::write_output_file(options.timeline, models::chrome_trace(traced, times));
  notice("timeline of rank 0 written to {}: open it in ui.perfetto.dev\n", options.timeline);
}

// Says before a run which it is, and how long the runs that are left should take.
void show_progress(Progress& progress, const job::PredictionTable& table, std::size_t run,
                   int iterations) {
  Seconds before{0};
  Seconds all{0};
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const Seconds time = table.rows[i].iteration.value * iterations;
    if (i < run) before += time;
    all += time;
  }
  const simulator::StrategyPrediction& row = table.rows[run];
  progress.show(fmt::format("{}, {} iterations of {}; {} to go", row.name, iterations,
                            to_text(row.iteration.value), to_text(all - before)),
                before / all);
}

int counted(const char* option, const std::string& text) {
  return *job::optional_count(option, text, most_iterations);
}

// How many times as long as stated a rank sleeps.
double slowness_of(const Options& options, int rank, int ranks) {
  simulator::StragglerTexts given;
  given.slow_ranks = options.slow_ranks;
  const auto stragglers = job::load_stragglers(given, ranks);
  if (!stragglers) return 1;
  const auto slow = stragglers->stragglers.slow_ranks.find(rank);
  return slow == stragglers->stragglers.slow_ranks.end() ? 1 : slow->second;
}

// Runs one rank of the job. Rank 0 predicts before, and reports after.
void run_rank(const Options& options, const job::Job& job, const runtime::Endpoint& endpoint) {
  const runtime::Transport& transport = endpoint.transport;
  std::optional<job::PredictionTable> table;
  if (transport.rank() == 0) {
    table.emplace(job::predict_table(job, job.networks.front(), transport.ranks()));
    warn(table->warnings);
  }
  const int iterations = counted("--iterations", options.iterations);
  const int warm_up = counted("--warm-up", options.warm_up);
  std::optional<runtime::Recorder> recorder;
  if (!options.timeline.empty())
    recorder.emplace(0, std::min(iterations, runtime::recorded_iterations));
  Progress progress(OffTerminal::lines);
  const std::vector<job::ReplayRun> runs =
      replay_plans(job, endpoint, table ? &*table : nullptr,
                   {.iterations = iterations,
                    .warm_up = warm_up,
                    .recorder = recorder ? &*recorder : nullptr,
                    .slowness = slowness_of(options, transport.rank(), transport.ranks()),
                    .begin = [&](std::size_t run) {
                      show_progress(progress, *table, run, warm_up + iterations);
                    }});
  progress.end();
  if (recorder) write_timeline(options, job, runs.front().plan, endpoint, *recorder);
  if (!table) return;
  report(job, *table, runs, transport.name(), options);
}

// The most streams that any of the plans may ask for.
int most_streams(const job::Job& job) {
  if (job.plan) return job.plan->plan.streams;
  int most = job.question.thresholds.streams.value_or(1);
  for (const models::Strategy* strategy : job.strategies) {
    if (strategy->traits().all_at_once)
      most = std::max(most, static_cast<int>(job.networks.front().work.gradients.size()));
  }
  return most;
}

// Says why a strategy cannot be run; nothing if it can. The only library whose own all-reduce runs
// is Open MPI, under mpirun, and it adds only FP32.
std::optional<InputError> why_not_run(const models::Strategy& strategy,
                                      const std::vector<models::WireType>& wires, bool is_mpi) {
  if (!strategy.is_replayable())
    return InputError(
        {"--strategy"},
        fmt::format("{} models what another system does: it can be predicted, not run",
                    strategy.name),
        "choose a strategy of ours, such as fused-ring");
  if (!strategy.library()) return std::nullopt;
  if (strategy.library() != models::Library::open_mpi || !is_mpi)
    return InputError({"--strategy"},
                      fmt::format("{} is a library's own all-reduce, which {} does not have",
                                  strategy.name, is_mpi ? "Open MPI" : "a job of threads"),
                      "choose a strategy with a schedule, such as fused-ring");
  for (const models::WireType wire : wires) {
    if (wire != models::WireType::fp32)
      return InputError({"--wire"}, fmt::format("{} adds no {}", strategy.name, name(wire)),
                        "choose --wire fp32, or a strategy with a schedule");
  }
  return std::nullopt;
}

// Leaves out what cannot be run where all strategies are meant. Throws InputError where such a
// strategy was named, before anything runs.
void keep_what_runs(const Options& options, bool is_mpi, job::Job& job) {
  const bool are_all = !options.question.strategies.are_named();
  for (const models::Strategy* strategy : job.strategies) {
    const auto why = why_not_run(*strategy, job.wires, is_mpi);
    if (why && !are_all) throw *why;
  }
  std::erase_if(job.strategies, [&](const models::Strategy* strategy) {
    return why_not_run(*strategy, job.wires, is_mpi).has_value();
  });
}

job::Job load(const Options& options, bool is_mpi) {
  job::Job job = job::load_job(options.question);
  job.question.compute_is_exact = true;
  if (job.networks.size() > 1)
    throw InputError({"--model"}, fmt::format("{} networks", job.networks.size()), "replay one");
  keep_what_runs(options, is_mpi, job);
  job.question.thresholds.unnegotiated = true;
  if (job.plan) {
    models::Plan unnegotiated = job.plan->plan;
    unnegotiated.dispatch.negotiation = models::Negotiation::none;
    if (unnegotiated.only_waits())
      job.plan->plan = std::move(unnegotiated);
    else
      job::refuse_of_other_system(job.plan->plan, options.question.plan.c_str());
  }
  if (job.question.layout != models::Layout{})
    throw InputError({"--tensor"}, "layouts of several axes can be predicted, not run",
                     "leave out --tensor, --context and --pipeline");
  if (job.question.accumulate > 1)
    throw InputError({"--accumulate"}, "several batches of an update can be predicted, not run",
                     "leave it out");
  if (job.question.thresholds.through_host)
    throw InputError({"--host-copies"}, "copies through the host can be predicted, not run",
                     "leave it out");
  if (job.plan && job.plan->plan.only_waits() &&
      job.plan->plan.overlap != models::Overlap::wait_free)
    throw InputError({options.question.plan},
                     "buckets that wait for a cycle are replayed wait-free",
                     "choose a plan with overlap wait-free");
  const bool has_cycles =
      std::any_of(job.strategies.begin(), job.strategies.end(),
                  [](const models::Strategy* strategy) { return !strategy->is_runnable(); });
  if (has_cycles &&
      job.question.overlap.value_or(models::Overlap::wait_free) != models::Overlap::wait_free)
    throw InputError({"--overlap"}, "buckets that wait for a cycle are replayed wait-free",
                     "leave it out");
  if (job.plan && job.plan->plan.overlap == models::Overlap::priority)
    throw InputError({options.question.plan}, "overlap priority cannot be run, only predicted",
                     "choose a plan with wait-free, double-buffered or none");
  if (job.question.overlap == models::Overlap::priority)
    throw InputError({"--overlap"}, "priority cannot be run, only predicted",
                     "choose wait-free, double-buffered or none");
  if (!options.timeline.empty() && job.strategies.size() * job.wires.size() > 1)
    throw InputError({"--timeline"}, "several runs and one timeline",
                     "give one --strategy and one --wire");
  (void)counted("--iterations", options.iterations);
  (void)counted("--warm-up", options.warm_up);
  return job;
}

void run(const Options& options) {
  check_output_format(options.format,
                      job::given_paths(options.question, {{"--timeline", options.timeline,
                                                           job::FileKind::timeline}}));
  const auto launched = job::rank_of_job();
  const job::Job job = load(options, launched.has_value());
  const Seconds patience = job::parse_patience(options.patience);
  if (launched) {
    job::refuse_ranks_option(options.question.ranks);
    (void)job::parse_ranks(std::to_string(launched->ranks), job.cluster);
    (void)slowness_of(options, 0, launched->ranks);
    runtime::MpiJob mpi(most_streams(job), patience);
    return run_rank(options, job, mpi.endpoint());
  }
  if (options.question.ranks.empty() && !job.plan)
    throw InputError("--ranks is missing",
                     "start it with mpirun, or give the number of ranks, as threads");
  const int ranks = ranks_of(job);
  if (ranks > job::most_thread_ranks)
    throw InputError({"--ranks"}, fmt::format("{} threads", ranks),
                     fmt::format("choose at most {}, or use mpirun", job::most_thread_ranks));
  (void)slowness_of(options, 0, ranks);
  runtime::run_as_threads(
      ranks, most_streams(job), patience,
      [&](const runtime::Endpoint& endpoint) { run_rank(options, job, endpoint); });
}

}  // namespace

void add_replay(Command& app) {
  Command& command = app.add_command(
      "replay", "Run plans with synthetic compute, and compare with their prediction");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->question);
  add_field(command, options->question, "ranks")
      .explained("Number of ranks, as threads of this process; mpirun says it otherwise");
  command.add_option("--iterations", options->iterations, "Iterations that are measured")
      .value("N (5)");
  command
      .add_option("--slow-rank", options->slow_ranks,
                  "Ranks that sleep this many times longer, by commas; the prediction is without "
                  "that")
      .value("RANK=FACTOR,...");
  command.add_option("--warm-up", options->warm_up, "Iterations before those").value("N (1)");
  add_field(command, options->question, "plan");
  add_patience_option(command, options->patience);
  command
      .add_option("--timeline", options->timeline,
                  "Write rank 0's timeline as Chrome trace JSON (opens in Perfetto)")
      .value("FILE");
  add_wide_option(command, options->wide);
  add_output_formats(command, options->format);
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
