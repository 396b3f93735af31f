// paceline train: run a plan in real mixed-precision training.
#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "cli/command.h"
#include "cli/doctor/build_info.h"
#include "cli/job/files.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/job/ranks.h"
#include "cli/job/run_times.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/stop_signals.h"
#include "cli/training_options.h"
#include "cli/training_report.h"
#include "models/base/parse_units.h"
#include "models/collective/algorithms.h"
#include "runtime/channel/mpi_job.h"
#include "runtime/channel/rank_threads.h"
#include "runtime/channel/tcp_job.h"
#include "runtime/network/trainable_network.h"
#include "runtime/training/backend.h"
#include "runtime/training/cuda_module.h"
#include "runtime/training/job_description.h"
#include "runtime/training/trainer.h"
#include "runtime/training/training_json.h"

namespace paceline::cli {
namespace {

// The job as this process sees it.
struct TrainingJob {
  models::Network network;
  runtime::Recipe recipe;
  std::unique_ptr<runtime::Dataset> dataset;
  models::Plan plan;
  int threads = 1;
  int workers = 1;
  std::int64_t checkpoint_every = 0;
  std::int64_t stop_after = 0;
  job::NamedDevice device;
  bool replay = true;
  runtime::CudaLayers layers;
  models::NumberType arithmetic = models::NumberType::fp32;  // of rank 0, once the training starts
  std::string computed_on;                                   // of rank 0, likewise
  std::optional<std::int64_t>
      recorded_from;  // the first iteration of a timeline, if one is written

  [[nodiscard]] runtime::TrainingRequest request(const job::TrainingOptions& options,
                                                 runtime::Recorder* recorder) {
    return {.network = network,
            .dataset = *dataset,
            .plan = plan,
            .recipe = recipe,
            .threads = threads,
            .workers = workers,
            .replay = replay,
            .checkpoint = options.checkpoint,
            .checkpoint_every = checkpoint_every,
            .resume = options.resume,
            .most_iterations = stop_after,
            .stop = stop_asked,
            .recorder = recorder};
  }
};

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// Cores for each rank of this node: its share, and no more than it is bound to. Several processes
// may be bound to the same cores; threads always are.
int default_threads(int ranks_here, bool are_threads) {
  const int usable = usable_cores();
  if (are_threads) return std::max(1, usable / ranks_here);
  const int online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return std::min(usable, std::max(1, online / ranks_here));
}

// That outputs can be written, and that none is another or an input.
void check_files(const job::TrainingOptions& options) {
  std::vector<job::GivenPath> paths = {
      job::output_path("--checkpoint", options.checkpoint, job::FileKind::unchecked),
      job::output_path("--metrics", options.metrics, job::FileKind::metrics),
      job::output_path("--timeline", options.timeline, job::FileKind::timeline),
      job::output_path("--layer-plans", options.layer_plans, job::FileKind::layer_plans),
      {"--plan", options.travel.plan, job::PathUse::input},
      {"--model", options.model, job::PathUse::name_or_input},
      {"--recipe", options.recipe, job::PathUse::name_or_input}};
  // A checkpoint may go on where it was resumed from.
  if (!job::is_same_file(options.checkpoint, options.resume))
    paths.push_back({"--resume", options.resume, job::PathUse::input});
  job::check_paths(paths, job::replaces(options.force));
  std::error_code error;
  if (!options.checkpoint.empty() && std::filesystem::exists(options.checkpoint, error) &&
      !std::filesystem::is_regular_file(options.checkpoint, error))
    throw InputError({"--checkpoint"}, options.checkpoint + " is no file",
                     "give the path of a file: it is replaced as a whole");
}

void check_required(const job::TrainingOptions& options) {
  job::require_option(options.model, "--model", "resnet-small");
  job::require_option(options.data, "--data", "fashion-mnist");
  check_files(options);
}

models::Network load_network(const job::TrainingOptions& options) {
  models::Network network = job::load_layers(options.model);
  job::parsing_option("--model", [&] { runtime::check_trainable(network); });
  return network;
}

// Ranks, and those of them on this node, which may be threads of this process.
struct NodeShare {
  int ranks = 1;
  int ranks_here = 1;
  bool are_threads = false;
};

// Sets what depends on how many ranks are on this node: the plan, the threads and the workers.
void share_node(const job::TrainingOptions& options, TrainingJob& job, const NodeShare& share) {
  job.plan = job::load_plan(options, job.network, job.recipe, share.ranks, share.ranks_here);
  job.threads = job::optional_count("--threads", options.threads, 1024)
                    .value_or(default_threads(share.ranks_here, share.are_threads));
  job.layers.threads = job.threads;
  // A CPU that computes has no cores to spare. One that feeds a GPU does: a thread trains, and one
  // brings gradients to other ranks.
  job.workers = job::optional_count("--workers", options.workers, 1024)
                    .value_or(job.device.is_cuda ? std::max(1, job.threads - 2) : 1);
}

TrainingJob load(const job::TrainingOptions& options, int ranks, int ranks_here, bool are_threads) {
  check_required(options);
  const auto number = [](const char* option, const std::string& text) -> std::int64_t {
    return text.empty() ? 0 : job::parsing_option(option, [&] {
      return parse_count(text, 1, 1'000'000'000'000);
    });
  };
  models::Network network = load_network(options);
  runtime::Recipe recipe = job::load_recipe(options, network);
  std::unique_ptr<runtime::Dataset> dataset = job::load_dataset(options, network, recipe);
  TrainingJob job{
      .network = std::move(network),
      .recipe = std::move(recipe),
      .dataset = std::move(dataset),
      .plan = {},
      .workers = 1,
      .checkpoint_every = number("--checkpoint-every", options.checkpoint_every),
      .stop_after = number("--stop-after", options.stop_after),
      .device = job::named_device(options.device),
      .replay = job::wants_cuda_graphs(options.cuda_graphs, job::named_device(options.device)),
      .layers = {},
      .computed_on = {},
      .recorded_from = {}};
  job.layers = job::named_layers(options, job.device);
  share_node(options, job, {.ranks = ranks, .ranks_here = ranks_here, .are_threads = are_threads});
  if (job.checkpoint_every > 0 && options.checkpoint.empty())
    throw InputError("--checkpoint-every without --checkpoint",
                     "say where, with --checkpoint FILE");
  if (!options.timeline.empty()) {
    // Not the first iterations, which warm caches and pages.
    job.recorded_from = job.stop_after > 0 ? std::clamp<std::int64_t>(job.stop_after - 4, 0, 5) : 5;
  }
  return job;
}

runtime::TrainingFacts facts(const job::TrainingOptions& options, const TrainingJob& job,
                             std::string_view transport) {
  return {.model = job.network.name(),
          .data = job.dataset->name(),
          .transport = std::string(transport),
          .device = job.computed_on,
          .threads_per_rank = job.threads,
          .recipe = job.recipe,
          .plan = job.plan,
          .arithmetic = job.arithmetic,
          .resumed_from = options.resume};
}

// "fp32", "mixed (bf16, arithmetic bf16)".
std::string computed_in(const TrainingJob& job) {
  if (job.recipe.precision == models::Precision::fp32) return "fp32";
  return fmt::format("mixed ({}, arithmetic {})", name(job.recipe.storage), name(job.arithmetic));
}

void print_title(const TrainingJob& job, std::string_view transport) {
  const std::string each = job.device.is_cuda ? job.computed_on
                                              : fmt::format("{} thread{} each", job.threads,
                                                            job.threads == 1 ? "" : "s");
  const int tensor = job.plan.layout.tensor;
  const std::string group =
      tensor == 1 ? "rank" : fmt::format("{} ranks that share tensors", tensor);
  print_lines(
      "{} on {}: {} rank{} ({}), {}, batch {} per {}, {}, recipe {}, {} epochs\n"
      "{}: {} bucket{}, {} on the wire, {}; all figures are measured\n\n",
      job.network.name(), job.dataset->name(), job.plan.all_ranks(),
      job.plan.all_ranks() == 1 ? "" : "s", transport, each, job.recipe.batch_per_rank, group,
      computed_in(job), job.recipe.name, job.recipe.epochs, job.plan.strategy,
      job.plan.buckets.size(), job.plan.buckets.size() == 1 ? "" : "s", name(job.plan.wire),
      name(job.plan.overlap));
  flush_output();
}

// What rank 0 says when all is done.
void print_outcome(const job::TrainingOptions& options, const TrainingJob& job,
                   const runtime::TrainingOutcome& outcome, std::string_view transport,
                   const std::string& lately) {
  if (options.json) {
    print("{}\n", runtime::training_document().text({facts(options, job, transport), outcome}));
    return;
  }
  if (outcome.iterations == 0) {
    print_lines("the job of {} is complete: nothing is left to do\n", options.resume);
  } else if (!outcome.complete) {
    const bool by_signal = outcome.stopped != runtime::StopReason::none;
    const std::string why =
        by_signal ? fmt::format(" by {}", signal_name(outcome.stopped)) : std::string();
    const std::string then = !options.checkpoint.empty()
                                 ? fmt::format("; go on with --resume {}", options.checkpoint)
                             : by_signal ? "; no checkpoint was asked for, so nothing is saved"
                                         : "";
    print_lines("stopped{} after {} iterations{}\n", why, outcome.iterations, then);
    if (!lately.empty()) print_lines("the last of them: {}\n", lately);
  } else if (!outcome.epochs.empty()) {
    print_lines("\ntest accuracy {:.2f}% after {} iterations\n",
                100 * outcome.epochs.back().test_accuracy, outcome.iterations);
  }
}

// Rank 0 writes its own timeline, with the times of all ranks, which all bring to it.
void write_timeline(const job::TrainingOptions& options, const TrainingJob& job,
                    const runtime::Endpoint& endpoint, const runtime::Recorder& recorder) {
  const int rank = endpoint.channel.rank();
  const std::string title =
      fmt::format("{} on {}, rank 0 of {}, batch {}, {}, {} on the wire", job.network.name(),
                  job.dataset->name(), job.plan.all_ranks(), job.recipe.batch_per_rank,
                  job.plan.strategy, name(job.plan.wire));
  models::TracedTimeline traced{models::traced_job(models::work(job.network), job.plan),
                                recorder.timeline(title, rank)};
  traced.timeline.batch_per_rank = job.recipe.batch_per_rank;
  const models::RunTimes times = job::gather_run_times(endpoint.channel, traced);
  if (rank != 0) return;
  if (traced.timeline.events.empty())
    throw RunError("write " + options.timeline,
                   "the run ended before its sixth iteration, from which on it is recorded");
  job::write_output_file(options.timeline, models::chrome_trace(traced, times));
  notice("timeline of rank 0 written to {}: open it in ui.perfetto.dev\n", options.timeline);
}

// What the rank computes on, of its node's devices.
std::unique_ptr<runtime::Backend> make_backend(const TrainingJob& job, int rank_on_node) {
  if (!job.device.is_cuda) return runtime::make_cpu_backend();
  return runtime::load_cuda_backend(
      job::device_of_rank(job.device, rank_on_node, runtime::cuda_devices()), job.layers);
}

// Runs one rank of the job, and returns why it stopped early. Rank 0 reports.
runtime::StopReason run_rank(const job::TrainingOptions& options, TrainingJob& job,
                             const runtime::Endpoint& endpoint, int rank_on_node) {
  const int rank = endpoint.channel.rank();
  const std::unique_ptr<runtime::Backend> backend = make_backend(job, rank_on_node);
  const std::unique_ptr<runtime::CollectiveExecutor> executor = backend->make_executor(
      endpoint,
      {.streams = job.plan.all_streams(), .patience = job::parse_patience(options.patience)});
  const std::string_view transport = executor->traits().name;
  std::optional<TrainingReport> report;
  if (rank == 0) {
    report.emplace(options.metrics, !options.resume.empty(), options.json);
    if (job.network.input().is_sequence) report->count_tokens(job.network.input().height);
    report->on_start([&](models::NumberType arithmetic) {
      job.arithmetic = arithmetic;
      job.computed_on = backend->description();
      warn(backend->notes());
      if (!options.json) print_title(job, transport);
      return start_line(facts(options, job, transport));
    });
  }
  std::optional<runtime::Recorder> recorder;
  if (job.recorded_from) recorder.emplace(*job.recorded_from, runtime::recorded_iterations);
  const runtime::TrainingOutcome outcome =
      runtime::train(job.request(options, recorder ? &*recorder : nullptr), endpoint.channel,
                     *backend, *executor, report ? &*report : nullptr);
  // Who is stopped early has no timeline to write. All ranks stop for the same reason.
  if (recorder && outcome.stopped == runtime::StopReason::none)
    write_timeline(options, job, endpoint, *recorder);
  if (rank != 0) return outcome.stopped;
  const std::string lately = report ? report->lately() : "";
  report.reset();
  print_outcome(options, job, outcome, transport, lately);
  return outcome.stopped;
}

// Tells main of a job that a signal has stopped.
void end_with(runtime::StopReason stopped) {
  if (stopped == runtime::StopReason::none) return;
  flush_output();
  throw StoppedBySignal(stopped);
}

void run_threads(const job::TrainingOptions& options, int ranks) {
  TrainingJob job = load(options, ranks, ranks, true);
  const Seconds patience = job::parse_patience(options.patience);
  runtime::StopReason stopped = runtime::StopReason::none;
  remember_stop_signals();
  runtime::run_as_threads(ranks, job.plan.all_streams(), patience,
                          [&](const runtime::Endpoint& endpoint) {
                            const runtime::StopReason reason =
                                run_rank(options, job, endpoint, endpoint.channel.rank());
                            if (endpoint.channel.rank() == 0) stopped = reason;
                          });
  end_with(stopped);
}

// All that ranks must have alike, in lines, before it is known which of them share a node.
std::string description(const job::TrainingOptions& options, TrainingJob& job, int ranks) {
  const runtime::TrainingRequest request = job.request(options, nullptr);
  return fmt::format("paceline: {}\n", doctor::version()) +
         runtime::job_description(request, ranks) + runtime::run_description(request) +
         fmt::format("device: {}\ntimeline: {}\n", job.device.is_cuda ? "cuda" : "cpu",
                     options.timeline.empty() ? "none" : "one");
}

// One process of those that meet.
void run_meeting(const job::TrainingOptions& options, const job::MeetingRank& own) {
  // The ranks are taken as if all were on this node, so that they all say the same.
  TrainingJob job = load(options, own.ranks, own.ranks, false);
  const runtime::JobIdentity identity{.description = description(options, job, own.ranks),
                                      .secret = job::rendezvous_secret()};
  const Seconds patience = job::parse_patience(options.patience);
  runtime::StopReason stopped = runtime::StopReason::none;
  {
    runtime::TcpJob met(own.place, identity, own.rank, own.ranks, patience);
    const runtime::PlaceOnNode place = met.place_on_node();
    share_node(options, job, {.ranks = own.ranks, .ranks_here = place.ranks});
    met.open_streams(job.plan.all_streams());
    remember_stop_signals();
    stopped = run_rank(options, job, met.endpoint(), place.rank);
  }
  end_with(stopped);
}

void run(const job::TrainingOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader of the metrics that goes away is an error with a line
  if (const auto own = job::rank_by_rendezvous({options.rendezvous, options.ranks, options.rank}))
    return run_meeting(options, *own);
  const auto launched = job::rank_of_job();
  if (launched) {
    job::refuse_ranks_option(options.ranks);
    TrainingJob job = load(options, launched->ranks, launched->ranks_on_node, false);
    const Seconds patience = job::parse_patience(options.patience);
    runtime::StopReason stopped = runtime::StopReason::none;
    {
      runtime::MpiJob mpi(job.plan.all_streams(), patience);
      remember_stop_signals();
      stopped = run_rank(options, job, mpi.endpoint(), launched->rank_on_node);
    }
    return end_with(stopped);
  }
  run_threads(options,
              job::optional_count("--ranks", options.ranks, job::most_thread_ranks).value_or(1));
}

}  // namespace

void add_train(Command& app) {
  Command& command = app.add_command(
      "train",
      "Run a plan: real mixed-precision training, alone, under mpirun, or by --rendezvous");
  const auto options = std::make_shared<job::TrainingOptions>();
  add_training_options(command, *options);
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
