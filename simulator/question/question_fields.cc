// Tests: tests/simulator/question_test.cc.
#include "simulator/question/question_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/network/network.h"
#include "models/plan/plan_json.h"
#include "simulator/cost/nccl_tables.h"
#include "simulator/planner/threshold_fields.h"
#include "simulator/prediction/matched_compute.h"

namespace paceline::simulator {
namespace {

constexpr double least_rate = 1e-3;
constexpr double most_rate = 1e9;

// "253.1", "253.1 images/s", "253.1@64".
StatedRate read_rate(const std::string& text) {
  const std::size_t at = text.rfind('@');
  const std::string rate = text.substr(0, at);
  const bool is_bare =
      !rate.empty() && rate.find_first_not_of("0123456789.eE+- ") == std::string::npos;
  StatedRate stated{is_bare ? PerSecond{parse_number(rate, least_rate, most_rate)}
                            : parse_rate(rate)};
  if (stated.rate.value() < least_rate || stated.rate.value() > most_rate)
    throw InputError(fmt::format("{} is out of range", in_quotes(rate)),
                     fmt::format("write {} to {} samples/s", least_rate, most_rate));
  if (at != std::string::npos)
    stated.batch = static_cast<int>(parse_count(text.substr(at + 1), 1, most_batch));
  return stated;
}

template <class T>
bool is_there(const T& member) {
  if constexpr (requires { member.has_value(); })
    return member.has_value();
  else
    return !member.empty();
}

// A member that is an optional, a text or a list, which is given where it holds something.
template <class Value, class T, class Base>
Field<Value> field(FieldLabel label, T Base::*member, T (*read)(const std::string& text)) {
  return {label,
          [member, read](Value& value, const std::string& text) { value.*member = read(text); },
          [member](const Value& value) { return is_there(value.*member); }};
}

template <class Value>
Field<Value> text_field(FieldLabel label, std::string Value::*member) {
  return field<Value>(
      label, member, +[](const std::string& text) { return text; });
}

// A member of the question that has a value in any case, and is given where that is another.
template <class T, class Base>
Field<Question> other_field(FieldLabel label, T Base::*member, T (*read)(const std::string& text)) {
  return {label,
          [member, read](Question& question, const std::string& text) {
            question.*member = read(text);
          },
          [member](const Question& question) { return question.*member != Question().*member; }};
}

Field<Question> flag_field(FieldLabel label, bool Question::*member) {
  return other_field(
      label, member, +[](const std::string&) { return true; });
}

Field<Question> layout_flag(std::string_view name, std::string_view help,
                            bool models::Layout::*member) {
  return {{.name = name, .group = layout_group, .help = help, .python = "bool", .is_expert = true},
          [member](Question& question, const std::string&) { question.layout.*member = true; },
          [member](const Question& question) { return question.layout.*member; }};
}

Field<Question> layout_field(std::string_view name, std::string_view takes, std::string_view help,
                             int models::Layout::*member) {
  return {{.name = name,
           .takes = takes,
           .otherwise = "1",
           .group = layout_group,
           .help = help,
           .python = "int"},
          [member](Question& question, const std::string& text) {
            question.layout.*member =
                static_cast<int>(parse_count(text, 1, models::most_of_an_axis));
          },
          [member](const Question& question) { return question.layout.*member > 1; }};
}

template <class T, T (*from_name)(std::string_view)>
T by_name(const std::string& text) {
  return from_name(text);
}

template <int most>
int count(const std::string& text) {
  return static_cast<int>(parse_count(text, 1, most));
}

void read_strategies(AskedStrategies& asked, const std::string& text) {
  asked.all = text == "all";
  asked.named.clear();
  if (asked.all) return;
  for (const std::string& name : comma_list(text)) asked.named.push_back(&models::strategy(name));
}

std::vector<models::WireType> read_wires(const std::string& text) {
  std::vector<models::WireType> wires;
  for (const std::string& name : comma_list(text))
    wires.push_back(models::wire_type_from_name(name));
  return wires;
}

template <int least_tenths>
std::optional<double> factor(const std::string& text) {
  return parse_number(text, least_tenths / 10.0, most_beside);
}

using Fields = std::vector<Field<Question>>;

Fields job_fields() {
  return {
      field<Question>({.name = "model",
                       .takes = "NAME|FILE",
                       .group = job_group,
                       .help = "Network: a name of the zoo or a YAML file; several by commas",
                       .python = "\"Network | PathOrName\""},
                      &Question::networks, comma_list),
      text_field({.name = "cluster",
                  .takes = "NAME|FILE",
                  .group = job_group,
                  .help = "Cluster: a name (paceline show catalog) or a YAML file",
                  .python = "\"Cluster | PathOrName\""},
                 &Question::cluster),
      text_field(
          {.name = "placement",
           .takes = "node-major|round-robin|SLOT,...|FILE",
           .group = job_group,
           .help =
               "Which slot (node x ranks per node + place) each rank sits in: node by node, one "
               "rank a node and then the next, or the slots of ranks 0, 1, ... by commas or in "
               "a file; by default as the cluster says",
           .python = "str | Sequence[int]",
           .is_expert = true},
          &Question::placement),
      text_field({.name = "nic",
                  .takes = "LINK|COUNTxLINK|BANDWIDTH",
                  .group = job_group,
                  .help = "NICs of a node in place of the cluster's own: a link of the catalogue, "
                          "several of it, or what a message gets of each, as in '100 Gbit/s'"},
                 &Question::nic),
      other_field({.name = "batch",
                   .takes = "N",
                   .otherwise = "64",
                   .group = job_group,
                   .help = "Samples per rank and iteration; where batches are accumulated, of one "
                           "of them. --micro-batch says the same",
                   .python = "int",
                   .also = "--micro-batch"},
                  &Question::batch_per_rank, count<most_batch>),
      other_field({.name = "accumulate",
                   .takes = "K",
                   .otherwise = "1",
                   .group = job_group,
                   .help = "Batches of a rank whose gradients are added up before they travel and "
                           "are used",
                   .python = "int",
                   .is_expert = true},
                  &Question::accumulate, count<most_accumulated>),
      other_field(
          {.name = "recompute",
           .takes = "none|selective|per-op|full|full:N",
           .otherwise = "none",
           .group = job_group,
           .help = "Activations that the backward pass computes anew: none, what attention that is "
                   "not fused keeps (selective), all but attention and every second matrix product "
                   "(per-op), or all of a block, of "
                   "every one or every N-th; it takes time in place of memory",
           .python = "str"},
          &Question::recompute,
          +[](const std::string& text) { return models::recompute_from_name(text); }),
      field<Question>(
          {.name = "global-batch",
           .takes = "N|\"N tokens\"",
           .group = job_group,
           .help = "Samples or tokens of all ranks in an iteration, as in 512 or \"4Mi tokens\", "
                   "in place of --accumulate: as many batches "
                   "of --batch as it takes",
           .python = "int | str",
           .is_expert = true},
          &Question::global_batch,
          +[](const std::string& text) { return std::optional(parse_global_batch(text)); }),
      {{.name = "strategy",
        .takes = "NAME,...",
        .group = job_group,
        .help =
            "Strategies by commas, or all (the default, with parameter servers and without k-fac)",
        .python = "Texts"},
       [](Question& question, const std::string& text) {
         read_strategies(question.strategies, text);
       },
       [](const Question& question) { return !question.strategies.are_chosen_here(); }},
      field<Question>(
          {.name = "sequence",
           .takes = "N",
           .group = precision_group,
           .help = "Tokens of a sample, for networks that read a sequence; by default what the "
                   "network says: 512 for BERT, 1024 for GPT-2",
           .python = "int",
           .is_expert = true},
          &Question::sequence,
          +[](const std::string& text) {
            return std::optional(parse_count(text, 1, models::largest_size));
          }),
      other_field({.name = "precision",
                   .takes = "fp32|mixed|fp8",
                   .otherwise = "mixed",
                   .group = precision_group,
                   .help = "Precision of computation: fp32, mixed (16 bits with FP32 master "
                           "weights), or fp8 (mixed, with the matrix products of a transformer's "
                           "blocks in 8 bits)"},
                  &Question::precision, by_name<models::Precision, models::precision_from_name>),
      {{.name = "optimizer",
        .takes = "sgd|momentum|adam|adamw|lamb|adafactor|muon|adam-8bit",
        .group = precision_group,
        .help =
            "What the optimizer keeps counts in the memory of a rank, and its update in an "
            "iteration. By default as much as adam for networks with attention, else as momentum"},
       [](Question& question, const std::string& text) {
         question.optimizer.kind = value_named(models::optimizer_kinds, "optimizer", text);
       },
       [](const Question& question) { return question.optimizer.kind.has_value(); }},
      {{.name = "offload",
        .takes = "optimizer",
        .group = precision_group,
        .help = "What the host keeps: optimizer for FP32 masters, states and gradients, which its "
                "processors update (ZeRO-Offload)",
        .is_expert = true},
       [](Question& question, const std::string& text) {
         if (text != models::offloaded_optimizer)
           throw unknown_name("part", text, {std::string(models::offloaded_optimizer)});
         question.optimizer.on_host = true;
       },
       [](const Question& question) { return question.optimizer.on_host; }},
      {{.name = "optimizer-states",
        .takes = "N",
        .group = precision_group,
        .help =
            "FP32 numbers that the optimizer keeps for each parameter, in place of --optimizer: 0 "
            "for plain SGD, 1 for momentum and LARS, 2 for Adam and LAMB",
        .python = "int",
        .is_expert = true},
       [](Question& question, const std::string& text) {
         question.optimizer.states =
             static_cast<int>(parse_count(text, 0, models::most_optimizer_states));
       },
       [](const Question& question) { return question.optimizer.states.has_value(); }},
      field<Question>(
          {.name = "wire",
           .takes = "fp32|fp16|bf16",
           .group = precision_group,
           .help = "Number type of gradients in an all-reduce; several by commas. By default "
                   "fp16 for mixed precision, else fp32",
           .python = "Texts"},
          &Question::wires, read_wires),
  };
}

Fields layout_fields() {
  return {
      layout_field("tensor", "T",
                   "Ranks that share the weights of layers (tensor parallelism), neighbours inside "
                   "a node where they fit; --batch is then that of the ranks of a sample",
                   &models::Layout::tensor),
      {{.name = "no-sequence-parallel",
        .group = layout_group,
        .help = "Keep norms and residuals whole on the ranks of --tensor, and sum by all-reduces",
        .python = "bool",
        .is_expert = true},
       [](Question& question, const std::string&) { question.layout.sequence_parallel = false; },
       [](const Question& question) { return !question.layout.sequence_parallel; }},
      layout_flag(
          "tensor-overlap",
          "Exchange what the ranks of --tensor share in parts, beside the products that make "
          "or read it (userbuffers of Transformer Engine)",
          &models::Layout::tensor_overlap),
      layout_field("context", "C",
                   "Ranks that share the elements of a sequence (context parallelism); keys and "
                   "values travel around them",
                   &models::Layout::context),
      layout_field(
          "expert", "E",
          "Neighbouring ranks of a stage that have different experts (expert parallelism); "
          "at least those of --tensor. Tokens travel to their experts and back, and each "
          "expert's gradients are summed over the ranks that have it",
          &models::Layout::expert),
      layout_flag("tokens-once",
                  "Send a token once to each node that has some of its experts (DeepEP, HybridEP), "
                  "and not to each expert",
                  &models::Layout::tokens_once),
      layout_field(
          "pipeline", "P",
          "Stages that the blocks of the network are cut into; the batches of --accumulate "
          "go through them one behind the other",
          &models::Layout::pipeline),
      layout_field("chunks", "V",
                   "Parts of the network that each stage of --pipeline has (interleaved stages)",
                   &models::Layout::chunks),
      {{.name = "pipeline-schedule",
        .takes = "1f1b|gpipe",
        .otherwise = "1f1b",
        .group = layout_group,
        .help = "Order of a stage's passes: forward and backward in turn, or all forward passes "
                "first",
        .is_expert = true},
       [](Question& question, const std::string& text) {
         question.layout.schedule = value_named(models::pipeline_schedules, "schedule", text);
       },
       [](const Question& question) {
         return question.layout.schedule != models::Layout{}.schedule;
       }},
  };
}

Fields travel_fields() {
  Fields fields;
  const auto add_thresholds = [&](std::string_view group) {
    for (const ThresholdField& threshold : threshold_fields())
      if (threshold.group == group)
        fields.push_back(
            field_of_part<Question, ThresholdRequest>(threshold, &Question::thresholds));
  };
  add_thresholds(travel_group);
  fields.push_back(field<Question>(
      {.name = "overlap",
       .takes = "wait-free|none|double-buffered|priority",
       .group = travel_group,
       .help = "Overlap policy of all strategies but no-overlap (wait-free)",
       .is_expert = true},
      &Question::overlap,
      +[](const std::string& text) { return std::optional(models::overlap_from_name(text)); }));
  fields.push_back(
      {{.name = "others",
        .group = systems_group,
        .help = "Predict the models of other systems, too (paceline show catalog)",
        .python = "bool",
        .is_expert = true},
       [](Question& question, const std::string&) { question.strategies.others = true; },
       [](const Question& question) { return question.strategies.others; }});
  add_thresholds(systems_group);
  return fields;
}

Fields computation_fields() {
  const auto of_compute = [](const Field<StatedCompute>& field) {
    return field_of_part(field, &Question::compute);
  };
  return {
      text_field({.name = "profile",
                  .takes = "NAME|FILE|none",
                  .group = computation_group,
                  .help = "Calibrated profile: a name, a JSON file, or none (the cluster's)",
                  .python = "\"Profile | PathOrName | None\""},
                 &Question::profile),
      of_compute(field<StatedCompute>(
          {.name = "throughput",
           .takes = "RATE[@BATCH],...",
           .group = computation_group,
           .help =
               "What one rank computes alone, in place of a profile's: samples/s at --batch, or "
               "at the batches that are named, as in 253.1@64,31@8",
           .python = "str | float"},
          &StatedCompute::throughput,
          +[](const std::string& text) {
            std::vector<StatedRate> rates;
            for (const std::string& part : comma_list(text)) rates.push_back(read_rate(part));
            return rates;
          })),
      of_compute(field<StatedCompute>(
          {.name = "node-throughput",
           .takes = "RATE[@BATCH]",
           .group = computation_group,
           .help =
               "What one full node trains, in samples/s: computation is solved for with the "
               "strategy that --strategy names, or else fused-ring; beside --throughput it says "
               "how much slower ranks of a node compute",
           .python = "str | float",
           .is_expert = true},
          &StatedCompute::node_throughput,
          +[](const std::string& text) {
            if (comma_list(text).size() > 1)
              throw InputError("several rates", "give that of one batch");
            return std::optional(read_rate(text));
          })),
      of_compute(field<StatedCompute>(
          {.name = "slowdown",
           .takes = "F",
           .group = computation_group,
           .help = "How many times as long a rank of a job of several computes as one alone",
           .python = "float",
           .is_expert = true},
          &StatedCompute::slowdown, factor<1>)),
      of_compute(field<StatedCompute>(
          {.name = "beside-traffic",
           .takes = "F",
           .group = computation_group,
           .help = "How many times as long again while a collective is on its way, 1 to 4",
           .python = "float",
           .is_expert = true},
          &StatedCompute::beside_traffic, factor<10>)),
      field<Question>(
          {.name = "compute-efficiency",
           .takes = "SHARE",
           .group = computation_group,
           .help = "Share of the device's peak rate that computation reaches, in place of the "
                   "cluster's, as in 45%: what models of FLOPs call it, before the fixed time of "
                   "each layer. More is faster; nothing where a profile calibrated computation",
           .python = "float | str",
           .is_expert = true},
          &Question::compute_efficiency,
          +[](const std::string& text) { return std::optional(parse_share(text, 1e-3, 1)); }),
      field<Question>(
          {.name = "stack",
           .takes = "eager|compiled|graphs",
           .group = computation_group,
           .help = "How kernels get to the GPU, which says what a layer takes whatever the batch: "
                   "one by one, fused by a compiler, or by CUDA graphs; the cluster's own without",
           .python = "str"},
          &Question::stack,
          +[](const std::string& text) {
            return std::optional(value_named(models::stacks, "stack", text));
          }),
      field<Question>(
          {.name = "attention-kernel",
           .takes = "flash-1|flash-2|flash-3",
           .group = computation_group,
           .help = "Kernel of fused attention: FlashAttention 1, 2 (PyTorch's until 2025), or 3, "
                   "as fast as cuDNN's; the fastest of the device without",
           .python = "str",
           .is_expert = true},
          &Question::attention_kernel,
          +[](const std::string& text) {
            return std::optional(value_named(models::attention_kernels, "attention kernel", text));
          }),
      other_field(
          {.name = "scale-gradients",
           .takes = "S",
           .otherwise = "1",
           .group = computation_group,
           .help = "Multiply the elements of every gradient, to keep proportions on a slow network "
                   "(as in 0.0625); computation stays as it is",
           .python = "float",
           .is_expert = true},
          &Question::gradient_scale,
          +[](const std::string& text) { return parse_share(text, 1e-9, 1); }),
      flag_field({.name = "exact-compute",
                  .group = computation_group,
                  .help = "Take compute times as stated, without their interval and without input, "
                          "as a replay does",
                  .python = "bool",
                  .is_expert = true},
                 &Question::compute_is_exact),
      other_field(
          {.name = "engine",
           .takes = "auto|step|flow|executor|simgrid",
           .otherwise = "auto",
           .group = engine_group,
           .help = "Engine that times schedules: auto is executor with a profile that calibrated a "
                   "transport; else step where no link is ever shared, else flow",
           .is_expert = true},
          &Question::engine, +[](const std::string& text) { return engine_from_name(text); }),
      field<Question>(
          {.name = "nccl",
           .takes = "2.20|2.28",
           .otherwise = "2.28",
           .group = engine_group,
           .help = "Version of NCCL whose tuning model chooses NCCL's own all-reduce",
           .is_expert = true},
          &Question::nccl_version,
          +[](const std::string& text) {
            (void)nccl_tables(text);
            return text;
          }),
  };
}

Fields single_fields() {
  return {
      text_field({.name = "ranks",
                  .takes = "N",
                  .group = size_group,
                  .help = "Number of ranks (GPUs, or CPU processes)",
                  .python = "int"},
                 &Question::ranks),
      field<Question>(
          {.name = "nodes",
           .takes = "N",
           .group = size_group,
           .help = "Number of full nodes, in place of --ranks",
           .python = "int"},
          &Question::nodes,
          +[](const std::string& text) { return std::optional(count<models::max_ranks>(text)); }),
      text_field(
          {.name = "plan",
           .takes = "FILE",
           .group = question_group,
           .help = "A plan to take as it is, in place of --strategy and all that chooses how "
                   "gradients travel: a file that predict --plan-out wrote, for this network and "
                   "number of ranks",
           .python = "\"Plan | PathOrName\"",
           .is_expert = true},
          &Question::plan),
      field<Question>(
          {.name = "baseline",
           .takes = "P0",
           .group = question_group,
           .help = "Number of ranks p0 that efficiencies are against, with the best plan of the "
                   "same strategy; by default one node, or 1 where ranks do not fill a node",
           .python = "int",
           .is_expert = true},
          &Question::baseline_ranks,
          +[](const std::string& text) { return std::optional(count<models::max_ranks>(text)); }),
      text_field({.name = "what-if",
                  .takes = "bandwidth=F+latency=F+compute=F",
                  .group = question_group,
                  .help = "Links with a multiple of their bandwidth or latency, devices with a "
                          "multiple of their speed; joined by +",
                  .python = "Changes"},
                 &Question::what_if),
      flag_field({.name = "ignore-memory",
                  .group = question_group,
                  .help = "Time jobs that do not fit into a device's memory, too",
                  .python = "bool"},
                 &Question::ignore_memory),
  };
}

}  // namespace

std::span<const Field<StragglerTexts>> straggler_fields() {
  static const std::array fields = {
      text_field({.name = "spread",
                  .takes = "constant|normal:CV|log-normal:SIGMA|file:PATH",
                  .otherwise = "constant",
                  .group = straggler_group,
                  .help = "How compute times of a rank vary from iteration to iteration: normal "
                          "(standard deviation as a share of the mean), log-normal (sigma), or "
                          "drawn from a file of times, one a line",
                  .is_expert = true},
                 &StragglerTexts::spread),
      text_field({.name = "slow-rank",
                  .takes = "RANK=FACTOR,...",
                  .group = straggler_group,
                  .help = "Ranks whose computation takes this many times longer, by commas",
                  .python = "Mapping[int, float]",
                  .is_expert = true},
                 &StragglerTexts::slow_ranks),
      text_field({.name = "slow-node",
                  .takes = "NODE=SHARE,...",
                  .group = straggler_group,
                  .help = "Nodes whose NICs have this share of their bandwidth, by commas",
                  .python = "Mapping[int, float]",
                  .is_expert = true},
                 &StragglerTexts::slow_nodes),
      text_field({.name = "backup",
                  .takes = "B",
                  .otherwise = "0",
                  .group = straggler_group,
                  .help = "Backup workers among the ranks: an update waits for the gradients of "
                          "the first ranks - B",
                  .python = "int",
                  .is_expert = true},
                 &StragglerTexts::backup),
      text_field({.name = "iterations",
                  .takes = "N",
                  .otherwise = "1000",
                  .group = straggler_group,
                  .help = "Iterations to simulate, where one of the options above is given",
                  .python = "int",
                  .is_expert = true},
                 &StragglerTexts::iterations),
      text_field({.name = "seed",
                  .takes = "S",
                  .otherwise = "1",
                  .group = straggler_group,
                  .help = "Seed of the random numbers that they are drawn with",
                  .python = "int",
                  .is_expert = true},
                 &StragglerTexts::seed)};
  return fields;
}

std::span<const Field<Question>> question_fields() {
  static const Fields fields = [] {
    Fields all = job_fields();
    for (const Fields& more : {layout_fields(), travel_fields(), computation_fields()})
      all.insert(all.end(), more.begin(), more.end());
    for (const Field<StragglerTexts>& field : straggler_fields())
      all.push_back(field_of_part(field, &Question::stragglers));
    const Fields last = single_fields();
    all.insert(all.end(), last.begin(), last.end());
    return all;
  }();
  return fields;
}

const Field<Question>& question_field(std::string_view name) {
  const Field<Question>* const field = find_field(question_fields(), name);
  PACELINE_ASSERT(field != nullptr, "a question has every field that is asked for");
  return *field;
}

std::vector<std::string_view> names_of_groups(std::initializer_list<std::string_view> groups) {
  std::vector<std::string_view> names;
  for (const Field<Question>& field : question_fields())
    if (std::ranges::find(groups, field.group) != groups.end()) names.push_back(field.name);
  return names;
}

std::vector<std::string> options_beside_plan(const Question& question) {
  std::vector<std::string_view> replaced = {"strategy", "wire", "others", "overlap"};
  for (const ThresholdField& field : threshold_fields()) replaced.push_back(field.name);
  const std::vector<std::string_view> of_layout = names_of_groups({layout_group});
  replaced.insert(replaced.end(), of_layout.begin(), of_layout.end());
  std::vector<std::string> given;
  for (const std::string_view name : replaced)
    if (question_field(name).is_given(question)) given.push_back(question_field(name).option());
  return given;
}

}  // namespace paceline::simulator
