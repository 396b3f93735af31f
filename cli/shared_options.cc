// Tests: tests/cli (end to end).
#include "cli/shared_options.h"

#include <fmt/core.h>

#include "cli/job/option_values.h"
#include "models/base/parse_units.h"

namespace paceline::cli {

void add_placement_option(Command& command, std::string& placement) {
  command
      .add_option("--placement", placement,
                  "Which slot (node x ranks per node + place) each rank sits in: node by node, one "
                  "rank a node and then the next, or the slots of ranks 0, 1, ... by commas or in "
                  "a file; by default as the cluster says")
      .value("node-major|round-robin|SLOT,...|FILE");
}

void add_profile_option(Command& command, std::string& profile) {
  command
      .add_option(
          "--profile", profile,
          "Calibrated profile: a shipped name, a JSON file, or none; by default the cluster's own")
      .value("NAME|FILE|none");
}

void add_engine_option(Command& command, std::string& engine) {
  command
      .add_option("--engine", engine,
                  "Engine that times schedules: auto is executor with a profile that calibrated a "
                  "transport; else step where no link is ever shared, else flow")
      .value("auto|step|flow|executor|simgrid (auto)");
}

void add_nccl_option(Command& command, std::string& version) {
  command
      .add_option("--nccl", version,
                  "Version of NCCL whose tuning model chooses NCCL's own all-reduce")
      .value("2.20|2.28 (2.28)");
}

void add_threshold_options(Command& command, job::ThresholdOptions& options,
                           const ThresholdDefaults& defaults) {
  command
      .add_option("--theta", options.theta,
                  "Fusion threshold on the wire: a bucket is sent once it holds this much")
      .value(fmt::format("SIZE ({})", defaults.theta));
  command
      .add_option("--eta", options.eta,
                  "Hybrid threshold on the wire: hierarchical up to it, ring above")
      .value(fmt::format("SIZE ({})", defaults.eta));
  command
      .add_option("--group", options.group,
                  "Group size k of hierarchical all-reduce; must divide the ranks")
      .value(fmt::format("K ({})", defaults.group));
  command
      .add_option("--segments", options.segments,
                  "Segments of a bucket that travel one behind the other in trees")
      .value(fmt::format("S ({})", defaults.segments));
  command.add_option("--rings", options.rings, "Rings of multi-ring").value("C (4)");
  command.add_option("--servers", options.servers, "Parameter servers among the ranks")
      .value(fmt::format("S ({})", defaults.servers));
  command.add_option("--streams", options.streams, "Buckets that may travel at the same time")
      .value("N (1)");
}

void add_system_options(Command& command, job::JobOptions& options) {
  command.add_flag("--others", options.others,
                   "Predict the models of other systems, too (paceline show catalog)");
  job::ThresholdOptions& thresholds = options.thresholds;
  command
      .add_option("--cycle", thresholds.cycle, "How often Horovod looks for gradients; 0: at once")
      .value("TIME (5 ms)");
  command
      .add_option("--horovod", thresholds.horovod,
                  "Version of Horovod, whose cycle, theta and negotiation are then taken")
      .value("VERSION (0.20)");
  command
      .add_option("--partition", thresholds.partition,
                  "Size on the wire of the parts into which ByteScheduler and its like cut tensors")
      .value("SIZE (the system's)");
  command
      .add_option("--credit", thresholds.credit,
                  "Bytes of such parts that may be on their way; 0: one part at a time")
      .value("SIZE (the system's)");
  command
      .add_option("--server-machines", thresholds.server_machines,
                  "Machines of their own for the servers of byteps, kvstore and their like")
      .value("N (on the workers' machines)");
  command
      .add_option("--server-transport", thresholds.server_transport,
                  "What such servers and their workers speak")
      .value("grpc|tcp|rdma (the system's)");
  command
      .add_option("--factors-every", thresholds.factors_every,
                  "Iterations from one refresh of k-fac's factors and inverses to the next")
      .value("N (1)");
  command.add_flag("--host-copies", thresholds.host_copies,
                   "Buckets go through the host, which sums them, as with MPI without GPUs");
}

void add_sequence_option(Command& command, std::string& sequence) {
  command
      .add_option("--sequence", sequence,
                  "Tokens of a sample, for networks that read a sequence; by default what the "
                  "network says: 512 for BERT, 1024 for GPT-2")
      .value("N");
}

void add_job_options(Command& command, job::JobOptions& options) {
  command
      .add_option(
          "--model", options.model,
          "Network: a name of the zoo (paceline show catalog) or a YAML file; several by commas")
      .value("NAME|FILE");
  command
      .add_option("--cluster", options.cluster, "Cluster: a name of the catalogue or a YAML file")
      .value("NAME|FILE");
  add_placement_option(command, options.placement);
  command
      .add_option("--nic", options.nic,
                  "NICs of a node in place of the cluster's own: a link of the catalogue, several "
                  "of them, or what a message gets of each, as in '100 Gbit/s'")
      .value("LINK|COUNTxLINK|BANDWIDTH");
  command.add_option("--batch", options.batch, "Samples per rank and iteration").value("N (64)");
  command
      .add_option("--accumulate", options.accumulate,
                  "Batches of a rank whose gradients are added up before they travel and are used")
      .value("K (1)");
  command
      .add_option("--strategy", options.strategies,
                  "Strategies by commas, or all (the default); k-fac is in the table only where it "
                  "is named")
      .value("NAME,...");
  add_prediction_options(command, options);
}

void add_prediction_options(Command& command, job::JobOptions& options) {
  add_sequence_option(command, options.sequence);
  command
      .add_option("--precision", options.precision,
                  "Precision of computation: fp32, or mixed (FP16 with FP32 master weights)")
      .value("fp32|mixed (mixed)");
  command
      .add_option("--wire", options.wire,
                  "Number type of gradients in an all-reduce; several by commas. By default fp16 "
                  "for mixed precision, else fp32")
      .value("fp32|fp16|bf16");
  add_threshold_options(command, options.thresholds,
                        {.theta = "chosen",
                         .eta = "chosen",
                         .group = "chosen",
                         .segments = "chosen",
                         .servers = "one for each node"});
  add_system_options(command, options);
  command
      .add_option("--server-placement", options.server_placement,
                  "Which server holds a bucket: the next one, or the one with the fewest bytes; or "
                  "which rank owns a layer of k-fac: the next one, or the one with the least to "
                  "invert")
      .value("round-robin|balanced (balanced)");
  command
      .add_option("--overlap", options.overlap,
                  "Overlap policy of all strategies but no-overlap (wait-free)")
      .value("wait-free|none|double-buffered|priority");
  add_profile_option(command, options.profile);
  command
      .add_option("--throughput", options.compute.throughput,
                  "What one rank computes alone, in place of a profile's: samples/s at --batch, or "
                  "at the batches that are named, as in 253.1@64,31@8")
      .value("RATE[@BATCH],...");
  command
      .add_option("--node-throughput", options.compute.node_throughput,
                  "What one full node trains, in samples/s: computation is solved for with the "
                  "strategy that --strategy names, or else fused-ring; beside --throughput it says "
                  "how much slower ranks of a node compute")
      .value("RATE[@BATCH]");
  command
      .add_option("--slowdown", options.compute.slowdown,
                  "How many times as long a rank of a job of several computes as one alone")
      .value("F");
  command
      .add_option("--beside-traffic", options.compute.beside_traffic,
                  "How many times as long again while a collective is on its way, 1 to 10")
      .value("F");
  command
      .add_option("--scale-gradients", options.gradient_scale,
                  "Multiply the elements of every gradient, to keep proportions on a slow network "
                  "(as in 0.0625); computation stays as it is")
      .value("S (1)");
  command.add_flag(
      "--exact-compute", options.compute_is_exact,
      "Take compute times as stated, without their interval and without input, as a replay does");
  add_engine_option(command, options.engine);
  add_nccl_option(command, options.nccl);
}

void add_memory_option(Command& command, bool& ignore_memory) {
  command.add_flag("--ignore-memory", ignore_memory,
                   "Time jobs that a device's memory does not hold, which are refused without it");
}

void add_what_if_option(Command& command, std::string& what_if) {
  command
      .add_option("--what-if", what_if,
                  "Links in nodes and between them with so many times their bandwidth or latency, "
                  "devices that compute so many times as fast; joined by +")
      .value("bandwidth=F+latency=F+compute=F");
}

void add_plan_option(Command& command, std::string& plan) {
  command
      .add_option("--plan", plan,
                  "A plan to take as it is, in place of --strategy and all that chooses how "
                  "gradients travel: a file that predict --plan-out wrote, for this network and "
                  "number of ranks")
      .value("FILE");
}

void add_baseline_option(Command& command, std::string& baseline) {
  command
      .add_option("--baseline", baseline,
                  "Number of ranks p0 that efficiencies are against, with the best plan of the "
                  "same strategy; by default one node, or 1 where ranks do not fill a node")
      .value("P0");
}

void add_rank_options(Command& command, job::StragglerOptions& options) {
  command
      .add_option("--spread", options.spread,
                  "How compute times of a rank vary from iteration to iteration: normal (standard "
                  "deviation as a share of the mean), log-normal (sigma), or drawn from a file of "
                  "times, one a line")
      .value("constant|normal:CV|log-normal:SIGMA|file:PATH (constant)");
  command
      .add_option("--slow-rank", options.slow_ranks,
                  "Ranks that compute so many times longer, by commas")
      .value("RANK=FACTOR,...");
}

void add_straggler_options(Command& command, job::StragglerOptions& options) {
  add_rank_options(command, options);
  command
      .add_option("--slow-node", options.slow_nodes,
                  "Nodes whose NICs have this share of their bandwidth, by commas")
      .value("NODE=SHARE,...");
  command
      .add_option("--backup", options.backup,
                  "Backup workers among the ranks: an update waits for the gradients of the first "
                  "ranks - B")
      .value("B (0)");
  command
      .add_option("--iterations", options.iterations,
                  "Iterations to simulate, where one of the options above is given")
      .value("N (1000)");
  command.add_option("--seed", options.seed, "Seed of the random numbers that they are drawn with")
      .value("S (1)");
}

void add_schedule_options(Command& command, job::ScheduleOptions& options) {
  command.add_option("--ranks", options.ranks, "Number of ranks").value("N");
  command
      .add_option(
          "--group", options.group,
          "Group size k of hierarchical schedules, row length of a torus; must divide the ranks")
      .value("K");
  command
      .add_option("--segments", options.segments,
                  "Segments of a bucket that travel one behind the other in trees")
      .value("S");
  command.add_option("--rings", options.rings, "Rings of multi-ring").value("C");
  command
      .add_option("--servers", options.servers,
                  "Parameter servers among the ranks; each holds a part of the bucket")
      .value("S");
}

void add_wide_option(Command& command, bool& wide) {
  command.add_flag("--wide", wide,
                   "Print all columns of the table; without it, those that fit into the terminal, "
                   "or into 100 columns where there is none");
}

void add_top_option(Command& command, std::string& top, const char* help) {
  command.add_option("--top", top, help).value("N");
}

std::size_t parse_top(const std::string& top) {
  if (top.empty()) return 0;
  constexpr std::int64_t most = 1000;
  return static_cast<std::size_t>(
      job::parsing_option("--top", [&] { return parse_count(top, 1, most); }));
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
      .value("RANKS=THROUGHPUT,...");
}

void add_tuning_options(Command& command, job::TuningOptions& options, bool& why) {
  command
      .add_option(
          "--all-reduce", options.all_reduces,
          "All-reduces that a bucket may take, as those of the runtime that the plan is for "
          "(paceline show schedules)")
      .value("NAME,... (all)");
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
  add_rank_options(command, options.ranks);
  command.add_option("--seed", options.ranks.seed, "Seed of the sampled states")
      .value(fmt::format("N ({})", simulator::sampling_seed));
}

void add_question_options(Command& command, job::WhatIfOptions& options) {
  command
      .add_option("--plan", options.plan,
                  "The plan that both are of (predict --plan-out): a run or a prediction that "
                  "followed another one is refused")
      .value("FILE");
  command
      .add_option("--what-if", options.questions,
                  "How long an iteration of the run would take: without-slowest, without-rank=R, "
                  "bandwidth=F or latency=F (times as much), compute=F (times as fast), "
                  "strategy=NAME, plan=FILE; several questions by commas, changes of one joined by "
                  "+")
      .value("QUESTION,...");
  command
      .add_option("--model", options.model,
                  "For --what-if: the network that ran, where it is a YAML file")
      .value("NAME|FILE");
  command
      .add_option("--cluster", options.cluster,
                  "For --what-if: the cluster that it ran on, by which a model says what was not "
                  "measured")
      .value("NAME|FILE");
  add_placement_option(command, options.placement);
  add_profile_option(command, options.profile);
  command
      .add_option("--precision", options.precision,
                  "For --what-if: precision of computation, fp32 or mixed")
      .value("fp32|mixed (fp32)");
  add_sequence_option(command, options.sequence);
  command
      .add_option("--scale-gradients", options.gradient_scale,
                  "For --what-if: as the replay had it")
      .value("S (1)");
  add_engine_option(command, options.engine);
}

void add_time_options(Command& command, job::TimeOptions& options) {
  command
      .add_option("algorithm", options.algorithm,
                  "Name of an all-reduce (paceline show catalog); nccl, nccl-ring or nccl-tree: "
                  "NCCL's own; or all")
      .required()
      .value("ALGORITHM|all");
  command
      .add_option("--cluster", options.cluster, "Cluster: a name of the catalogue or a YAML file")
      .value("NAME|FILE");
  add_placement_option(command, options.placement);
  add_schedule_options(command, options.build);
  command
      .add_option("--size", options.sizes,
                  "Bytes of the all-reduce: 4KiB,25MiB, or 8-1GiB, which doubles (--factor)")
      .value("LIST|RANGE (8-1GiB)");
  command.add_option("--factor", options.factor, "Ratio of a size of a range to the one before it")
      .value("F (2)");
  command.add_option("--dtype", options.type, "Type of the elements")
      .value("fp32|fp16|bf16 (fp32)");
  add_nccl_option(command, options.nccl);
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
      .value("FILE");
  add_profile_option(command, options.profile);
  add_engine_option(command, options.engine);
}

void add_proof_options(Command& command, job::ProofOptions& options) {
  command.add_option("--schedule", options.schedule, "Name of the schedule (paceline show catalog)")
      .value("NAME");
  add_schedule_options(command, options.build);
  command
      .add_option("--chunks", options.chunks,
                  "Chunks of the bucket; by default three counts that exercise the schedule")
      .value("C");
}

}  // namespace paceline::cli
