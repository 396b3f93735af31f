// Tests: tests/cli (end to end).
#include "cli/shared_options.h"

#include <fmt/core.h>

#include "cli/job/option_values.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "simulator/planner/threshold_fields.h"

namespace paceline::cli {

Option& add_field(Command& command, simulator::Question& question, std::string_view name) {
  return command.add_field(simulator::question_field(name), question);
}

void add_fields(Command& command, simulator::Question& question,
                std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) add_field(command, question, name);
}

void add_field_text(Command& command, std::string& text, std::string_view name) {
  const FieldLabel& field = simulator::question_field(name);
  command.add_option(field.option(), text, std::string(field.help))
      .value(field.shown())
      .python(std::string(field.python));
}

void add_job_options(Command& command, simulator::Question& question) {
  for (const std::string_view name : simulator::names_of_groups({simulator::job_group}))
    add_field(command, question, name);
  add_prediction_options(command, question);
}

void add_prediction_options(Command& command, simulator::Question& question) {
  for (const std::string_view name : simulator::names_of_groups(
           {simulator::layout_group, simulator::precision_group, simulator::travel_group,
            simulator::systems_group, simulator::computation_group, simulator::engine_group}))
    add_field(command, question, name);
}

void add_size_options(Command& command, simulator::Question& question) {
  for (const std::string_view name : simulator::names_of_groups({simulator::size_group}))
    add_field(command, question, name).in_group(simulator::job_group);
}

void add_straggler_options(Command& command, simulator::Question& question) {
  for (const std::string_view name : simulator::names_of_groups({simulator::straggler_group}))
    add_field(command, question, name);
}

void add_schedule_options(Command& command, job::ScheduleOptions& options) {
  command.add_option("--ranks", options.ranks, "Number of ranks").value("N").python("int");
  command
      .add_option(
          "--group", options.group,
          "Group size k of hierarchical schedules, row length of a torus; must divide the ranks")
      .value("K")
      .python("int");
  command
      .add_option("--segments", options.segments,
                  "Segments of a bucket that travel one behind the other in trees")
      .value("S")
      .python("int");
  command.add_option("--rings", options.rings, "Rings of multi-ring").value("C").python("int");
  command
      .add_option("--servers", options.servers,
                  "Parameter servers among the ranks; each holds a part of the bucket")
      .value("S")
      .python("int");
}

void add_wide_option(Command& command, bool& wide) {
  command
      .add_flag("--wide", wide,
                "Print all columns of the table; without it, those that fit into the terminal, "
                "or into 100 columns where there is none")
      .expert()
      .in_group(output_group);
}

void add_provenance_option(Command& command, bool& provenance) {
  command
      .add_flag("--provenance", provenance,
                "Also print each figure that times rest on, with its interval and source")
      .in_group(output_group);
}

void add_top_option(Command& command, std::string& top, const char* help) {
  command.add_option("--top", top, help).value("N").in_group(output_group);
}

std::size_t parse_top(const std::string& top) {
  if (top.empty()) return 0;
  constexpr std::int64_t most = 1000;
  return to_size(job::parsing_option("--top", [&] { return parse_count(top, 1, most); }));
}

void add_patience_option(Command& command, std::string& patience) {
  command
      .add_option("--patience", patience,
                  "How long a rank waits for a silent one before it ends the job")
      .value(fmt::format("TIME ({})", job::default_patience));
}

void add_measured_throughputs_option(Command& command, std::string& measured) {
  command
      .add_option(
          "--measured", measured,
          "Throughputs of all ranks that were measured, to stand beside the curve in --json "
          "and --html: 8=1710images/s,64=13200images/s")
      .value("RANKS=THROUGHPUT,...")
      .python("str | Mapping[int, float | str]");
}

void add_tuning_options(Command& command, job::TuningOptions& options, bool& why) {
  command
      .add_option("--runtime", options.runtimes,
                  "What runs the plan: ddp (PyTorch's DistributedDataParallel, which takes "
                  "bucket_cap_mb), nccl (buckets of your own by NCCL), horovod, paceline (any "
                  "all-reduce for each bucket); several by commas. By default ddp,nccl on GPUs of "
                  "NVIDIA, else paceline")
      .value("ddp|nccl|horovod|paceline")
      .python("Texts");
  command
      .add_option(
          "--all-reduce", options.all_reduces,
          "All-reduces that a bucket may take, as those of the runtime that the plan is for "
          "(paceline show schedules)")
      .value("NAME,... (all)")
      .python("Texts");
  command
      .add_option("--time-limit", options.time_limit,
                  "How long the command may take to search where the best plan is not proven, to "
                  "explain it and to sample; Ctrl-C stops it, too")
      .value(fmt::format("TIME ({})", job::default_time_limit));
  command.add_flag("--why", why,
                   "Also say what each bucket would lose by other choices, and try plans with "
                   "these; takes a part of the time");
}

void add_robust_options(Command& command, job::RobustOptions& options) {
  command.add_flag("--robust", options.robust,
                   "Choose by the 95th percentile over sampled states of the world, and keep the "
                   "runtime's default where the gain over it is not certain");
  command
      .add_option("--default", options.runtime,
                  "What the runtime does by itself: a strategy, or the document of a plan")
      .value("NAME|FILE.json (ddp)");
  for (const std::string_view name : {"spread", "slow-rank"})
    command.add_field(*find_field(simulator::straggler_fields(), name), options.ranks);
  command.add_option("--seed", options.ranks.seed, "Seed of the sampled states")
      .value(fmt::format("N ({})", simulator::sampling_seed))
      .python("int");
}

void add_question_options(Command& command, job::WhatIfOptions& options) {
  const auto explained = [&](std::string_view name, const char* help) -> Option& {
    return add_field(command, options.job, name).explained(help);
  };
  explained("plan",
            "The plan that both are of (predict --plan-out): a run or a prediction that followed "
            "another one is refused");
  command
      .add_option("--what-if", options.questions,
                  "How long an iteration of the run would take: without-slowest, without-rank=R, "
                  "bandwidth=F or latency=F (times as much), compute=F (times as fast), "
                  "strategy=NAME, plan=FILE; several questions by commas, changes of one joined by "
                  "+")
      .value("QUESTION,...");
  explained("model", "For --what-if: the network that ran, where it is a YAML file");
  explained("cluster",
            "For --what-if: the cluster that it ran on, by which a model says what was not "
            "measured");
  add_fields(command, options.job, {"placement", "profile"});
  explained("precision", "For --what-if: precision of computation, fp32 or mixed")
      .value("fp32|mixed (fp32)");
  add_field(command, options.job, "sequence");
  explained("scale-gradients", "For --what-if: as the replay had it");
  add_field(command, options.job, "engine");
}

void add_time_options(Command& command, job::TimeOptions& options) {
  command
      .add_option("algorithm", options.algorithm,
                  "Name of a collective's algorithm (paceline show catalog); nccl, nccl-ring or "
                  "nccl-tree: NCCL's own; or all, which is every algorithm of the collective")
      .required()
      .value("ALGORITHM|all");
  command
      .add_option("--collective", options.collective,
                  "What nccl and all are to time, of " + models::names_of_collectives() +
                      "; an algorithm of the catalogue says it itself")
      .value("NAME (all-reduce)");
  command
      .add_option("--cluster", options.cluster, "Cluster: a name of the catalogue or a YAML file")
      .value("NAME|FILE");
  add_field_text(command, options.placement, "placement");
  add_schedule_options(command, options.build);
  command
      .add_option(
          "--size", options.sizes,
          "Bytes, as nccl-tests counts them: 4KiB,25MiB, or 8-1GiB, which doubles (--factor)")
      .value("LIST|RANGE (8-1GiB)")
      .python("str | Sequence[str]");
  command.add_option("--factor", options.factor, "Ratio of a size of a range to the one before it")
      .value("F (2)")
      .python("float");
  command.add_option("--dtype", options.type, "Type of the elements")
      .value("fp32|fp16|bf16 (fp32)");
  add_field_text(command, options.nccl, "nccl");
  command
      .add_option("--measured", options.measured,
                  "All-reduces of ALGORITHM that were measured on this cluster, a small and a "
                  "large one, which tell the pace of its links: 64B=40.5us@16,1GiB=11.1ms@16")
      .value("SIZE=TIME@RANKS,...");
  command
      .add_option(
          "--against", options.against,
          "Output of nccl-tests or of osu_allreduce to set beside the prediction, size by "
          "size; nothing is calibrated on it. It says the sizes, and the ranks and the type "
          "as far as it can; --size then keeps those from its least to its largest")
      .value("FILE")
      .python("PathOrName");
  add_field_text(command, options.profile, "profile");
  add_field_text(command, options.engine, "engine");
}

void add_proof_options(Command& command, job::ProofOptions& options) {
  command.add_option("--schedule", options.schedule, "Name of the schedule (paceline show catalog)")
      .value("NAME");
  add_schedule_options(command, options.build);
  command
      .add_option("--chunks", options.chunks,
                  "Chunks of the bucket; by default three counts that exercise the schedule")
      .value("C")
      .python("int");
}

}  // namespace paceline::cli
