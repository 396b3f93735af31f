// paceline export: a schedule as a file of another tool, or as a picture; a plan for another runtime.
#include <fmt/core.h>

#include <array>

#include "cli/command.h"
#include "cli/export_plan.h"
#include "cli/job/files.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/job/schedule.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/planning_options.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/collective/export/goal.h"
#include "models/collective/export/msccl.h"
#include "models/collective/export/svg.h"
#include "simulator/cost/communication_cost.h"

namespace paceline::cli {
namespace {

struct Options {
  std::string algorithm;
  job::ScheduleOptions build;
  std::string format;
  std::string size;
  std::string output;
  job::PlanExportOptions plan;  // with --cluster, which a schedule takes, too
  bool force = false;
};

constexpr const char* default_size = "64 MiB";
constexpr int bytes_per_element = 4;
// The file grows with the ranks, and the tools that read it take all of it into memory.
constexpr int most_ranks = 65536;

std::int64_t parse_elements(const std::string& text) {
  return job::parsing_option("--size", [&] {
    const Bytes size = parse_bytes(text.empty() ? default_size : text);
    const double elements = size.value() / bytes_per_element;
    constexpr double most = 1e15 / bytes_per_element;
    if (!(elements <= most))
      throw InputError(text + " is no size of a bucket", "give less than 1 PB");
    if (elements != static_cast<double>(static_cast<std::int64_t>(elements))) {
      throw InputError(fmt::format("{} are no whole elements of {} bytes", text, bytes_per_element),
                       fmt::format("give a multiple of {} B, as in 64 MiB", bytes_per_element));
    }
    return static_cast<std::int64_t>(elements);
  });
}

void write_goal(const Options& options, const job::NamedSchedule& named, const std::string& title,
                const job::TextSink& sink) {
  models::GoalOptions goal{.title = title,
                           .elements = parse_elements(options.size),
                           .bytes_per_element = bytes_per_element};
  if (!options.plan.cluster.empty()) {
    const models::Cluster cluster =
        job::parsing_option("--cluster", [&] { return job::load_cluster(options.plan.cluster); });
    goal.gamma = simulator::communication_cost(cluster, nullptr, simulator::Bound::stated).gamma;
  }
  models::write_goal(named.schedule, goal, sink);
}

struct Format {
  const char* name;
  bool has_sizes;  // takes --size and --cluster
  void (*write)(const Options&, const job::NamedSchedule&, const std::string& title,
                const job::TextSink&);
};

const std::array formats = {
    Format{"goal", true, write_goal},
    Format{"msccl", false,
           [](const Options&, const job::NamedSchedule& named, const std::string& title,
              const job::TextSink& sink) {
             sink(models::msccl(named.algorithm.collective, named.schedule, title));
           }},
    Format{"svg", false,
           [](const Options&, const job::NamedSchedule& named, const std::string&,
              const job::TextSink& sink) {
             sink(models::svg(named.schedule,
                              models::described(named.algorithm.name, named.options),
                              name(named.algorithm.collective)));
           }},
};

const Format& format_named(const std::string& wanted) {
  if (wanted.empty()) {
    throw InputError("--format is missing",
                     "give goal (LogGOPSim, ATLAHS), msccl (MSCCL XML) or svg (a picture)");
  }
  for (const std::string& of_plans : job::plan_export_formats()) {
    if (wanted == of_plans)
      throw InputError({"--format"}, wanted + " is a format of plans",
                       "give the file of a plan (paceline predict --plan-out)");
  }
  std::vector<std::string> names;
  for (const Format& format : formats) {
    if (format.name == wanted) return format;
    names.emplace_back(format.name);
  }
  throw unknown_name("format", wanted, names).at({"--format"});
}

// Refuses options of the other half. Each is an option and its value.
void refuse(const std::vector<std::pair<const char*, std::string>>& given, const char* why,
            const char* remedy) {
  for (const auto& [option, value] : given) {
    if (!value.empty()) throw InputError({option}, why, remedy);
  }
}

void run_plan(const Options& options) {
  refuse({{"--ranks", options.build.ranks},
          {"--group", options.build.group},
          {"--segments", options.build.segments},
          {"--rings", options.build.rings},
          {"--servers", options.build.servers},
          {"--size", options.size}},
         "the plan says this already", "leave it out");
  job::PlanExportOptions plan = options.plan;
  plan.plan = options.algorithm;
  for (const Format& format : formats) {
    if (format.name == options.format && options.format != "msccl")
      throw InputError({"--format"}, options.format + " is a format of one schedule",
                       "name the algorithm in place of the plan");
  }
  export_plan(plan, options.format, options.output, job::replaces(options.force));
}

void run(const Options& options) {
  if (job::names_a_file(options.algorithm)) return run_plan(options);
  refuse({{"--model", options.plan.model},
          {"--profile", options.plan.profile},
          {"--nccl", options.plan.nccl},
          {"--measured", options.plan.measured},
          {"--batch", options.plan.batch},
          {"--precision", options.plan.precision}},
         "it is of plans", "leave it out, or give the file of a plan");
  const models::CollectiveAlgorithm& algorithm = models::collective_algorithm(options.algorithm);
  const Format& format = format_named(options.format);
  for (const auto& [option, given] :
       {std::pair("--size", &options.size), std::pair("--cluster", &options.plan.cluster)}) {
    if (!given->empty() && !format.has_sizes) {
      throw InputError(
          {option}, fmt::format("a file of format {} holds neither bytes nor times", format.name),
          "leave it out");
    }
  }
  job::check_paths({job::output_path("--output", options.output, job::FileKind::schedule),
                    {"--cluster", options.plan.cluster, job::PathUse::name_or_input}},
                   job::replaces(options.force));
  const job::NamedSchedule named = job::load_schedule(algorithm, options.build, most_ranks);
  const std::string title = fmt::format(
      "{}, {} ranks", models::described(algorithm.name, named.options), named.options.ranks);
  const auto write = [&](const job::TextSink& sink) { format.write(options, named, title, sink); };
  if (options.output.empty()) return write(print_text);
  Progress progress(fmt::format("writing {} as {}", title, format.name));
  job::write_output_file(options.output, write);
}

}  // namespace

void add_export(Command& app) {
  Command& command = app.add_command(
      "export",
      "A schedule for LogGOPSim and ATLAHS (GOAL), for MSCCL (XML), or as a picture; a plan for "
      "NCCL, MSCCL, Horovod, PyTorch DDP and FSDP2, DeepSpeed, Megatron-LM, torchtitan and NeMo");
  const auto options = std::make_shared<Options>();
  command
      .add_option("algorithm", options->algorithm,
                  "Name of the schedule (paceline show catalog), or the file of a plan (paceline "
                  "predict --plan-out), with a slash or .json in its name")
      .required()
      .value("ALGORITHM|PLAN");
  add_schedule_options(command, options->build);
  command
      .add_option("--format", options->format,
                  "Of a schedule: goal, msccl or svg; of a plan: nccl-tuner, nccl-constants, "
                  "nccl-csv, nccl-config, horovod, ddp, msccl, fsdp2, deepspeed, megatron, "
                  "torchtitan or nemo (docs/exports.md)")
      .value("FORMAT");
  command
      .add_option(
          "--size", options->size,
          fmt::format("Bytes of the bucket, for --format goal; by default {}", default_size))
      .value("BYTES");
  command
      .add_option(
          "--cluster", options->plan.cluster,
          "Cluster that a plan is for, by which NCCL's choice and the iterations of Horovod and "
          "DDP are predicted; or whose device reduces, for --format goal: without it, reductions "
          "cost nothing")
      .value("NAME|FILE");
  add_plan_export_options(command, options->plan);
  command
      .add_option("--output", options->output,
                  "Write a file, whole or not at all (a folder for --format msccl of a plan); by "
                  "default standard output")
      .value("FILE");
  add_force_option(command, options->force);
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
