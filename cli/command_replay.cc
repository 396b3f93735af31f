// paceline replay: run plans with synthetic compute, and set what was measured beside what was
// predicted.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "calibration/fit/statistics.h"
#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "cli/job/ranks.h"
#include "cli/output.h"
#include "cli/prediction_text.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "models/base/parse_units.h"
#include "models/plan/plan_json.h"
#include "models/timeline/timeline.h"
#include "runtime/channel/messages.h"
#include "runtime/channel/mpi_job.h"
#include "runtime/channel/rank_threads.h"
#include "runtime/replay/replay.h"
#include "simulator/cost/compute_time.h"
#include "simulator/iteration/prediction_json.h"

namespace paceline::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int most_iterations = 100'000;

struct Options {
  job::JobOptions job;
  std::string iterations = "5";
  std::string warm_up = "1";
  std::string patience = job::default_patience;
  std::string timeline;
  bool json = false;
};

// What rank 0 tells all ranks.
struct Script {
  std::vector<models::Plan> plans;
  std::vector<runtime::LayerDuration> layers;
  Seconds update;
};

struct Result {
  models::Plan plan;
  runtime::ReplayOutcome outcome;  // as rank 0 measured it
};

// The plans as documents, and the durations of the synthetic compute in seconds.
std::string script_text(const Script& script, const models::NetworkWork& network) {
  Json json = {
      {"update_s", script.update.value()}, {"layers_s", Json::array()}, {"plans", Json::array()}};
  for (const runtime::LayerDuration& layer : script.layers)
    json["layers_s"].push_back({layer.forward.value(), layer.backward.value()});
  for (const models::Plan& plan : script.plans)
    json["plans"].push_back(to_json(models::plan_document(plan, network)));
  return json.dump();
}

// Checks each plan against this rank's network: a rank that was given another one must not run it.
Script script_from(const Json& json, const models::NetworkWork& network, int ranks) {
  Script script{.plans = {}, .layers = {}, .update = Seconds{json["update_s"]}};
  for (const Json& layer : json["layers_s"])
    script.layers.push_back({Seconds{layer[0]}, Seconds{layer[1]}});
  for (const Json& plan : json["plans"]) {
    const std::string sender = "the plan of rank 0";
    models::PlanDocument document = models::parse_plan(plan.get<std::string>(), sender);
    check_plan(document, sender, network, ranks);
    script.plans.push_back(std::move(document.plan));
  }
  return script;
}

// The plans of the predicted rows, with the compute times that the replay sleeps. Only rank 0 calls
// this: it alone has the predictions.
Script written_script(const job::Job& job, const job::PredictionTable& table) {
  Script script;
  for (const simulator::StrategyPrediction& row : table.rows) script.plans.push_back(row.plan);
  const simulator::ComputeTimes compute =
      compute_times({table.network.work, job.cluster.device, job.profile ? &*job.profile : nullptr,
                     job.precision, job.batch_per_rank},
                    simulator::Reading::stated);
  for (const simulator::LayerTime& layer : compute.layers)
    script.layers.push_back({layer.forward, layer.backward});
  script.update = compute.update;
  return script;
}

Json seconds_json(const std::vector<Seconds>& times) {
  Json json = Json::array();
  for (const Seconds time : times) json.push_back(time.value());
  return json;
}

Json result_json(const Result& result, const simulator::StrategyPrediction& predicted) {
  const Seconds measured = calibration::typical_iteration(result.outcome.iterations);
  return {{"name", result.plan.strategy},
          {"wire_type", name(result.plan.wire)},
          {"buckets", result.plan.buckets.size()},
          {"measured",
           {{"provenance", "measured"},
            {"iteration_s", measured.value()},
            {"iterations_s", seconds_json(result.outcome.iterations)},
            {"exposed_communication_s", calibration::median(result.outcome.exposed).value()}}},
          {"predicted", Json::parse(simulator::to_json(predicted))},
          {"relative_error", predicted.iteration.value / measured - 1}};
}

std::string title_text(const job::Job& job, const job::PredictionTable& table,
                       std::string_view transport, const Options& options) {
  std::string text = fmt::format(
      "{} on {}, {} ranks ({}), batch {} per rank, {}: replay with synthetic compute, {} "
      "iterations "
      "after {}\n",
      table.network.work.name, job.cluster.name, table.ranks, transport, job.batch_per_rank,
      name(job.precision), options.iterations, options.warm_up);
  return text + setting_text(job) + "\n";
}

void print_table(const job::Job& job, const job::PredictionTable& table,
                 const std::vector<Result>& results, std::string_view transport,
                 const Options& options) {
  Table rows({{"strategy"},
              {"wire"},
              {"measured", Align::right},
              {"min - max", Align::right},
              {"exposed", Align::right},
              {"predicted", Align::right},
              {"low - high", Align::right},
              {"error", Align::right},
              {"buckets", Align::right},
              {"by"}});
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& [plan, outcome] = results[i];
    const simulator::StrategyPrediction& predicted = table.rows[i];
    const Seconds measured = calibration::typical_iteration(outcome.iterations);
    const auto [low, high] =
        std::minmax_element(outcome.iterations.begin(), outcome.iterations.end());
    rows.add({plan.strategy, std::string(name(plan.wire)), to_text(measured),
              fmt::format("{} - {}", to_text(*low), to_text(*high)),
              to_text(calibration::median(outcome.exposed)), to_text(predicted.iteration.value),
              predicted.by_library_model ? "-"
                                         : fmt::format("{} - {}", to_text(predicted.iteration.low),
                                                       to_text(predicted.iteration.high)),
              fmt::format("{:+.1f} %", 100 * (predicted.iteration.value / measured - 1)),
              fmt::format("{}", plan.buckets.size()), predicted.timed_by});
  }
  print("{}{}", title_text(job, table, transport, options), rows.text());
  print(
      "\nMeasured on rank 0: the median over every two iterations in a row, the least and the most "
      "of one, exposed communication.\nPredicted before the run: the time of an iteration and its "
      "interval, low - high. error: predicted against measured.\nPredictions rest on:\n  {:<18} "
      "{}\n{}",
      "compute", table.rows.front().compute_source, basis_text(job));
}

void report(const job::Job& job, const job::PredictionTable& table,
            const std::vector<Result>& results, std::string_view transport,
            const Options& options) {
  if (!options.json) return print_table(job, table, results, transport, options);
  Json json = {{"schema", "paceline.replay/1"},   {"model", table.network.work.name},
               {"cluster", job.cluster.name},     {"ranks", table.ranks},
               {"transport", transport},          {"batch_per_rank", job.batch_per_rank},
               {"precision", name(job.precision)}};
  json.update(Json::parse(setting_json(job)));
  json["strategies"] = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i)
    json["strategies"].push_back(result_json(results[i], table.rows[i]));
  json["warnings"] = table.warnings;
  print("{}\n", json.dump(2));
}

int count(const char* option, const std::string& text) {
  return static_cast<int>(
      job::parsing_option(option, [&] { return parse_count(text, 1, most_iterations); }));
}

void write_timeline(const Options& options, const job::PredictionTable& table, const Result& result,
                    const runtime::Recorder& recorder) {
  const std::string title = fmt::format(
      "{} on {}, rank 0 of {}, {}, {} on the wire; synthetic compute", table.network.work.name,
      table.job.cluster.name, table.ranks, result.plan.strategy, name(result.plan.wire));
  models::Timeline timeline = recorder.timeline(title, 0);
  timeline.batch_per_rank = table.job.batch_per_rank;
  job::write_output_file(options.timeline,
                         models::chrome_trace(table.network.work, result.plan, {timeline}));
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

// Runs one rank of the job. Rank 0 predicts before, and reports after.
void run_rank(const Options& options, const job::Job& job, const runtime::Endpoint& endpoint) {
  runtime::Transport& transport = endpoint.transport;
  const job::LoadedNetwork& network = job.networks.front();
  std::optional<job::PredictionTable> table;
  std::string text;
  if (transport.rank() == 0) {
    table.emplace(job::predict_table(job, network, transport.ranks()));
    warn(table->warnings);
    text = script_text(written_script(job, *table), network.work);
  }
  const Script script = script_from(Json::parse(runtime::broadcast_text(endpoint.channel, text)),
                                    network.work, transport.ranks());
  std::vector<Result> results;
  const int iterations = count("--iterations", options.iterations);
  const int warm_up = count("--warm-up", options.warm_up);
  Progress progress(OffTerminal::lines);
  std::optional<runtime::Recorder> recorder;
  if (!options.timeline.empty() && transport.rank() == 0)
    recorder.emplace(0, std::min(iterations, runtime::recorded_iterations));
  for (const models::Plan& plan : script.plans) {
    if (table) show_progress(progress, *table, results.size(), warm_up + iterations);
    runtime::ReplayOutcome outcome =
        replay(transport, {.network = network.work,
                           .plan = plan,
                           .layers = script.layers,
                           .update = script.update,
                           .warm_up = warm_up,
                           .iterations = iterations,
                           .recorder = recorder ? &*recorder : nullptr});
    results.push_back({plan, std::move(outcome)});
  }
  progress.end();
  if (transport.rank() != 0) return;
  if (recorder) write_timeline(options, *table, results.front(), *recorder);
  report(job, *table, results, transport.name(), options);
}

// The most streams that any of the plans may ask for.
int most_streams(const job::Job& job) {
  if (job.plan) return job.plan->plan.streams;
  int most = job.thresholds.streams.value_or(1);
  for (const models::Strategy* strategy : job.strategies) {
    if (strategy->on_servers() != nullptr)
      most = std::max(most, static_cast<int>(job.networks.front().work.gradients.size()));
  }
  return most;
}

// Says why a strategy cannot be run; nothing if it can. The only library whose own all-reduce runs
// is Open MPI, under mpirun, and it adds only FP32.
std::optional<InputError> why_not_run(const models::Strategy& strategy,
                                      const std::vector<models::WireType>& wires, bool is_mpi) {
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
  const bool are_all = options.job.strategies.empty() || options.job.strategies == "all";
  for (const models::Strategy* strategy : job.strategies) {
    const auto why = why_not_run(*strategy, job.wires, is_mpi);
    if (why && !are_all) throw *why;
  }
  std::erase_if(job.strategies, [&](const models::Strategy* strategy) {
    return why_not_run(*strategy, job.wires, is_mpi).has_value();
  });
}

job::Job load(const Options& options, bool is_mpi) {
  job::Job job = job::load_job(options.job);
  job.compute_is_exact = true;
  if (job.networks.size() > 1)
    throw InputError({"--model"}, fmt::format("{} networks", job.networks.size()), "replay one");
  keep_what_runs(options, is_mpi, job);
  if (job.plan && job.plan->plan.overlap == models::Overlap::priority)
    throw InputError({options.job.plan}, "overlap priority cannot be run, only predicted",
                     "choose a plan with wait-free, double-buffered or none");
  if (job.overlap == models::Overlap::priority)
    throw InputError({"--overlap"}, "priority cannot be run, only predicted",
                     "choose wait-free, double-buffered or none");
  if (!options.timeline.empty()) {
    if (job.strategies.size() * job.wires.size() > 1)
      throw InputError({"--timeline"}, "several runs and one timeline",
                       "give one --strategy and one --wire");
    job::check_output_of(options.job, "--timeline", options.timeline);
  }
  (void)count("--iterations", options.iterations);
  (void)count("--warm-up", options.warm_up);
  return job;
}

void run(const Options& options) {
  const auto launched = job::rank_of_job();
  const job::Job job = load(options, launched.has_value());
  const Seconds patience = job::parse_patience(options.patience);
  if (launched) {
    job::refuse_ranks_option(options.job.ranks);
    (void)job::parse_ranks(std::to_string(launched->ranks), job.cluster);
    runtime::MpiJob mpi(most_streams(job), patience);
    return run_rank(options, job, mpi.endpoint());
  }
  if (options.job.ranks.empty() && !job.plan)
    throw InputError("--ranks is missing",
                     "start it with mpirun, or give the number of ranks, as threads");
  const int ranks = ranks_of(options.job, job);
  if (ranks > job::most_thread_ranks)
    throw InputError({"--ranks"}, fmt::format("{} threads", ranks),
                     fmt::format("choose at most {}, or use mpirun", job::most_thread_ranks));
  runtime::run_as_threads(
      ranks, most_streams(job), patience,
      [&](const runtime::Endpoint& endpoint) { run_rank(options, job, endpoint); });
}

}  // namespace

void add_replay(Command& app) {
  Command& command = app.add_command(
      "replay", "Run plans with synthetic compute, and compare with their prediction");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->job);
  command
      .add_option("--ranks", options->job.ranks,
                  "Number of ranks, as threads of this process; mpirun says it otherwise")
      .value("N");
  command.add_option("--iterations", options->iterations, "Iterations that are measured")
      .value("N (5)");
  command.add_option("--warm-up", options->warm_up, "Iterations before those").value("N (1)");
  add_plan_option(command, options->job.plan);
  add_patience_option(command, options->patience);
  command
      .add_option("--timeline", options->timeline,
                  "Write rank 0's timeline as Chrome trace JSON (opens in Perfetto)")
      .value("FILE");
  command.add_flag("--json", options->json, "Print one JSON document");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
