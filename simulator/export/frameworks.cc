// Tests: tests/cli/export_frameworks_test.py (each file is read by another reader).
#include "simulator/export/frameworks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/base/json.h"
#include "models/base/to_size.h"
#include "models/layout/sharding.h"

namespace paceline::simulator {
namespace {

using models::PipelineSchedule;
using models::RecomputeKind;
using models::ShardingKind;

// The facts that all frameworks' settings are made of.
struct Settings {
  const models::PlanDocument& document;
  const models::Plan& plan = document.plan;
  const models::MadeFor& job = *document.made_for;
  const models::Layout& layout = plan.layout;
  models::ShardUse use = {};

  explicit Settings(const models::PlanDocument& of) : document(of) {
    if (const auto* sharded = plan.uses<models::ShardUse>()) use = *sharded;
  }

  [[nodiscard]] bool is_sharded() const { return use.kind != ShardingKind::none; }
  // Ranks with the same weights, which have other samples.
  [[nodiscard]] int data() const { return plan.ranks / layout.context; }
  [[nodiscard]] int shards() const { return is_sharded() ? use.shards : 1; }
  [[nodiscard]] int replicas() const { return plan.ranks / shards(); }
  [[nodiscard]] std::int64_t global_batch() const {
    return std::int64_t{data()} * job.batch_per_rank * job.accumulate;
  }
  [[nodiscard]] bool is_16_bit() const { return has_masters(job.precision); }
  [[nodiscard]] bool reduces_in_fp32() const { return plan.wire == models::WireType::fp32; }
  [[nodiscard]] models::RecomputeKind recomputes() const { return job.recompute.kind; }
  [[nodiscard]] bool recomputes_blocks() const { return recomputes() == RecomputeKind::full; }
  [[nodiscard]] std::int64_t largest_bucket() const {
    std::int64_t most = 0;
    for (const models::Bucket& bucket : plan.buckets) most = std::max(most, bucket.elements);
    return most;
  }
  // The blocks of a unit that is gathered together: 1, or how many the largest bucket has.
  [[nodiscard]] int blocks_of_unit() const {
    int most = 1;
    for (const models::Bucket& bucket : plan.buckets) {
      std::vector<std::string_view> blocks;
      for (int i = 0; i < bucket.gradient_count; ++i) {
        const std::string_view block =
            models::block_of(document.gradients[to_size(bucket.first_gradient + i)].name);
        if (!block.empty() && (blocks.empty() || blocks.back() != block)) blocks.push_back(block);
      }
      most = std::max(most, static_cast<int>(blocks.size()));
    }
    return most;
  }
  [[nodiscard]] std::string title() const {
    return fmt::format("{}, {}, {} ranks: {}, micro-batch {} x {}", document.network, plan.strategy,
                       plan.all_ranks(), described(layout, plan.all_ranks()), job.batch_per_rank,
                       job.accumulate);
  }
};

const char* torch_type(bool is_fp32) {
  return is_fp32 ? "float32" : "bfloat16";
}

// Collects notes: parts of the plan that no framework's file says, or not this one's.
class Notes {
 public:
  Notes(const Settings& settings, std::string_view framework)
      : settings_(settings), framework_(framework) {
    if (settings.plan.wire == models::WireType::fp16)
      add("the plan's gradients travel in FP16: bfloat16 is written, which is as large");
    if (settings.job.optimizer_on_host && framework != "DeepSpeed")
      add("the optimizer on the host is not set here");
  }

  void add(const std::string& note) { notes_.push_back(note); }
  // One of these axes is not the framework's to set.
  void refuse_axes(std::initializer_list<std::string_view> own) {
    const models::Layout& layout = settings_.layout;
    for (const auto& [name, ranks] : {std::pair{"tensor", layout.tensor},
                                      {"context", layout.context},
                                      {"expert", layout.expert},
                                      {"pipeline", layout.pipeline}})
      if (ranks > 1 && std::ranges::find(own, name) == own.end())
        add(fmt::format("{} {}: {} is told by the model's own code", name, ranks, framework_));
  }
  [[nodiscard]] ExportedText with(std::string text) && { return {std::move(text), notes_}; }
  [[nodiscard]] std::string as_comments(std::string_view mark) const {
    std::string text;
    for (const std::string& note : notes_) text += fmt::format("{} {}\n", mark, note);
    return text;
  }

 private:
  const Settings& settings_;
  std::string_view framework_;
  std::vector<std::string> notes_;
};

// Notes the recomputation that Megatron Core has no setting for.
void note_recomputation(const Settings& of, Notes& notes) {
  if (of.recomputes() == RecomputeKind::per_op)
    notes.add("per-op recomputation: Megatron Core names modules, by recompute_modules");
  if (of.job.recompute.every > 1)
    notes.add(fmt::format(
        "recomputation of every {}th block: Megatron Core has that of the first ones, by "
        "recompute_method block and recompute_num_layers",
        of.job.recompute.every));
}

Settings settings_of(const models::PlanDocument& document) {
  if (!document.made_for)
    throw InputError("the plan does not say its job", "write it with paceline predict --plan-out");
  const models::Plan& plan = document.plan;
  if (plan.uses<models::KfacUse>() != nullptr || plan.uses<models::ServerUse>() != nullptr)
    throw InputError(fmt::format("{} is no data parallelism of these frameworks", plan.strategy),
                     "give a plan of zero1, zero2, fsdp, hsdp or an all-reduce");
  return Settings(document);
}

ExportedText fsdp2_text(const models::PlanDocument& document) {
  const Settings of = settings_of(document);
  Notes notes(of, "fully_shard");
  notes.refuse_axes({});
  if (of.use.kind == ShardingKind::zero1 || of.use.kind == ShardingKind::zero2)
    notes.add(
        fmt::format("{}: fully_shard keeps gradients and states in shards, and with "
                    "reshard_after_forward=False parameters from the forward to the backward "
                    "pass alone",
                    name(of.use.kind)));
  if (!of.is_sharded())
    notes.add("the plan shards nothing: replicate() is DistributedDataParallel's (--format ddp)");
  if (of.job.accumulate > 1)
    notes.add(
        fmt::format("{} micro-batches an iteration are the script's loop; each is reduced unless "
                    "set_requires_gradient_sync(False)",
                    of.job.accumulate));
  if (of.job.precision == models::Precision::fp8)
    notes.add("fp8: convert linear layers with torchao before this is called");
  if (of.recomputes() == RecomputeKind::per_op)
    notes.add(
        "per-op recomputation: give checkpoint_wrapper the context_fn of "
        "torch.utils.checkpoint.create_selective_checkpoint_contexts");
  if (of.recomputes() == RecomputeKind::selective)
    notes.add(
        "selective recomputation: of the model's own attention, which scaled_dot_product_attention "
        "does without");
  const bool keeps = of.use.kind != ShardingKind::zero3 || !of.use.reshard;
  std::string text = fmt::format("# {}\n{}", of.title(), notes.as_comments("#"));
  text +=
      "import torch\n"
      "from torch.distributed.device_mesh import init_device_mesh\n";
  if (of.is_sharded())
    text += "from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard\n";
  else
    text += "from torch.distributed._composable.replicate import replicate\n";
  if (of.recomputes_blocks())
    text +=
        "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import "
        "checkpoint_wrapper\n";
  text +=
      "\n\ndef parallelize(model, blocks):\n"
      "    \"\"\"Applies the plan. `blocks` are the model's blocks in order, in a "
      "ModuleList.\"\"\"\n";
  if (of.recomputes_blocks())
    text += fmt::format(
        "    for i in range(0, len(blocks), {}):\n"
        "        blocks[i] = checkpoint_wrapper(blocks[i])\n",
        of.job.recompute.every);
  if (!of.is_sharded()) {
    text += fmt::format("    mesh = init_device_mesh(\"cuda\", ({},))\n", of.plan.ranks);
    text += "    return replicate(model, device_mesh=mesh)\n";
    return std::move(notes).with(std::move(text));
  }
  text += of.replicas() > 1 ? fmt::format(
                                  "    mesh = init_device_mesh(\"cuda\", ({}, {}), "
                                  "mesh_dim_names=(\"replicate\", \"shard\"))\n",
                                  of.replicas(), of.shards())
                            : fmt::format(
                                  "    mesh = init_device_mesh(\"cuda\", ({},), "
                                  "mesh_dim_names=(\"shard\",))\n",
                                  of.shards());
  text += fmt::format(
      "    policy = MixedPrecisionPolicy(param_dtype=torch.{}, reduce_dtype=torch.{})\n",
      torch_type(!of.is_16_bit()), torch_type(of.reduces_in_fp32()));
  const std::string arguments = fmt::format("mesh=mesh, mp_policy=policy, reshard_after_forward={}",
                                            keeps ? "False" : "True");
  const int together = of.use.kind == ShardingKind::zero3 ? of.blocks_of_unit() : 1;
  if (together == 1)
    text += fmt::format("    for block in blocks:\n        fully_shard(block, {})\n", arguments);
  else
    text += fmt::format(
        "    for first in range(0, len(blocks), {0}):\n"
        "        fully_shard(list(blocks[first:first + {0}]), {1})\n",
        together, arguments);
  text += "    fully_shard(model, mesh=mesh, mp_policy=policy)\n    return model\n";
  return std::move(notes).with(std::move(text));
}

ExportedText deepspeed_text(const models::PlanDocument& document) {
  const Settings of = settings_of(document);
  Notes notes(of, "DeepSpeed");
  notes.refuse_axes({});
  const int stage = static_cast<int>(of.use.kind);
  Json json = {{"train_micro_batch_size_per_gpu", of.job.batch_per_rank},
               {"gradient_accumulation_steps", of.job.accumulate},
               {"train_batch_size", of.global_batch()},
               {"bf16", Json{{"enabled", of.is_16_bit()}}},
               {"communication_data_type", of.reduces_in_fp32() ? "fp32" : "bfp16"}};
  Json zero = {{"stage", stage}};
  if (of.is_sharded()) {
    zero["overlap_comm"] = of.plan.overlap != models::Overlap::none;
    zero["contiguous_gradients"] = true;
    zero["reduce_bucket_size"] = of.largest_bucket();
    if (of.use.kind == ShardingKind::zero3)
      zero["stage3_prefetch_bucket_size"] = of.largest_bucket();
    else
      zero["allgather_bucket_size"] = of.largest_bucket();
    if (of.replicas() > 1) zero["mics_shard_size"] = of.shards();
  }
  if (of.job.optimizer_on_host) zero["offload_optimizer"] = Json{{"device", "cpu"}};
  json["zero_optimization"] = zero;
  if (of.recomputes() != RecomputeKind::none)
    notes.add(
        fmt::format("recomputation ({}) is the model's: wrap it in "
                    "deepspeed.checkpointing.checkpoint",
                    name(of.job.recompute)));
  if (of.job.precision == models::Precision::fp8)
    notes.add("fp8: the model's linear layers are Transformer Engine's");
  if (of.use.kind == ShardingKind::zero1 || of.use.kind == ShardingKind::zero2)
    notes.add(
        "DeepSpeed sends an all-reduce's bytes for each bucket, and keeps its part of it "
        "(use_multi_rank_bucket_allreduce)");
  if (of.use.kind == ShardingKind::zero3) {
    notes.add("parameters are gathered for each submodule, and not for each block");
    if (!of.use.reshard)
      notes.add("parameters that stay gathered after a forward pass: stage 3 always drops them");
  }
  return std::move(notes).with(json.indented() + "\n");
}

ExportedText megatron_text(const models::PlanDocument& document) {
  const Settings of = settings_of(document);
  const models::Layout& layout = of.layout;
  Notes notes(of, "Megatron-LM");
  std::string text = fmt::format(
      "--tensor-model-parallel-size {}\n--pipeline-model-parallel-size {}\n"
      "--context-parallel-size {}\n",
      layout.tensor, layout.pipeline, layout.context);
  const auto flag = [&text](bool is_set, std::string_view words) {
    if (is_set) text += fmt::format("{}\n", words);
  };
  flag(layout.tensor > 1 && layout.sequence_parallel, "--sequence-parallel");
  flag(layout.tensor_overlap, "--tp-comm-overlap");
  flag(layout.chunks > 1, fmt::format("--num-virtual-stages-per-pipeline-rank {}", layout.chunks));
  flag(layout.expert > 1,
       fmt::format("--expert-model-parallel-size {}\n--expert-tensor-parallel-size 1",
                   layout.expert_ranks()));
  text += fmt::format("--micro-batch-size {}\n--global-batch-size {}\n", of.job.batch_per_rank,
                      of.global_batch());
  flag(of.job.sequence > 0, fmt::format("--seq-length {}", of.job.sequence));
  flag(of.is_16_bit(), "--bf16");
  flag(of.job.precision == models::Precision::fp8, "--fp8-format hybrid");
  flag(of.reduces_in_fp32(), "--accumulate-allreduce-grads-in-fp32");
  const bool overlaps = of.plan.overlap != models::Overlap::none;
  flag(overlaps && of.plan.ranks > 1, "--overlap-grad-reduce");
  flag(overlaps && of.plan.ranks > 1 && of.use.kind != ShardingKind::zero3,
       fmt::format("--ddp-bucket-size {}", of.largest_bucket()));
  if (of.is_sharded()) {
    text += "--use-distributed-optimizer\n";
    flag(overlaps, "--overlap-param-gather");
    if (of.use.kind != ShardingKind::zero1)
      text +=
          fmt::format("--use-megatron-fsdp\n--data-parallel-sharding-strategy {}\n",
                      of.use.kind == ShardingKind::zero2 ? "optim_grads" : "optim_grads_params");
    flag(of.replicas() > 1, fmt::format("--num-distributed-optimizer-instances {}", of.replicas()));
  }
  flag(of.recomputes_blocks() && of.job.recompute.every == 1,
       "--recompute-granularity full\n--recompute-method uniform\n--recompute-num-layers 1");
  flag(of.recomputes() == RecomputeKind::selective, "--recompute-granularity selective");
  note_recomputation(of, notes);
  if (layout.schedule == PipelineSchedule::gpipe) notes.add("gpipe: Megatron-LM has 1F1B alone");
  notes.add(
      "the network's own sizes are not in the plan: --num-layers and its like stand beside these");
  return std::move(notes).with(std::move(text));
}

ExportedText torchtitan_text(const models::PlanDocument& document) {
  const Settings of = settings_of(document);
  const models::Layout& layout = of.layout;
  Notes notes(of, "torchtitan");
  const bool is_pipeline = layout.pipeline > 1;
  if (of.use.kind == ShardingKind::zero1 || of.use.kind == ShardingKind::zero2)
    notes.add(
        fmt::format("{}: torchtitan shards by FSDP2; parameters that stay gathered come nearest "
                    "to it",
                    name(of.use.kind)));
  if (layout.tensor > 1 && !layout.sequence_parallel)
    notes.add("torchtitan's tensor parallelism has sequence parallelism");
  if (layout.tensor_overlap)
    notes.add(
        "exchanges beside products: enable_async_tensor_parallel of its [parallelism], which needs "
        "torch.compile");
  if (of.recomputes() == RecomputeKind::selective)
    notes.add("selective recomputation: torchtitan's attention is fused and keeps no scores");
  const char* reshard = of.use.kind == ShardingKind::zero3 && of.use.reshard ? "always" : "never";
  std::string text = fmt::format("# {}\n{}", of.title(), notes.as_comments("#"));
  text += "[training]\n";
  text += fmt::format("local_batch_size = {}\n",
                      of.job.batch_per_rank * (is_pipeline ? of.job.accumulate : 1));
  text += fmt::format("global_batch_size = {}\n", of.global_batch());
  if (of.job.sequence > 0) text += fmt::format("seq_len = {}\n", of.job.sequence);
  text += fmt::format("mixed_precision_param = \"{}\"\nmixed_precision_reduce = \"{}\"\n",
                      torch_type(!of.is_16_bit()), torch_type(of.reduces_in_fp32()));
  text += "\n[parallelism]\n";
  // Contexts are shards of parameters, too, and are not counted among the degrees of data.
  const int shards = std::max(1, of.shards() / layout.context);
  text += fmt::format("data_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n",
                      of.data() / shards, shards);
  if (of.is_sharded()) text += fmt::format("fsdp_reshard_after_forward = \"{}\"\n", reshard);
  text += fmt::format("tensor_parallel_degree = {}\ncontext_parallel_degree = {}\n", layout.tensor,
                      layout.context);
  if (layout.expert > 1)
    text += fmt::format("expert_parallel_degree = {}\nexpert_tensor_parallel_degree = 1\n",
                        layout.expert_ranks());
  text += fmt::format("pipeline_parallel_degree = {}\n", layout.pipeline);
  if (is_pipeline) {
    const char* schedule = layout.schedule == PipelineSchedule::gpipe ? "GPipe"
                           : layout.chunks > 1                        ? "Interleaved1F1B"
                                                                      : "1F1B";
    text +=
        fmt::format("pipeline_parallel_schedule = \"{}\"\npipeline_parallel_microbatch_size = {}\n",
                    schedule, of.job.batch_per_rank);
  }
  const int every = of.job.recompute.every;
  const bool is_selective = of.recomputes() == RecomputeKind::per_op || every > 1;
  text +=
      fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n", is_selective ? "selective"
                                                                : of.recomputes_blocks() ? "full"
                                                                                         : "none");
  if (is_selective)
    text += fmt::format("selective_ac_option = \"{}\"\n",
                        every > 1 ? std::to_string(every) : std::string("op"));
  if (of.job.precision == models::Precision::fp8)
    text += "\n[model]\nconverters = [\"quantize.linear.float8\"]\n";
  return std::move(notes).with(std::move(text));
}

ExportedText nemo_text(const models::PlanDocument& document) {
  const Settings of = settings_of(document);
  const models::Layout& layout = of.layout;
  Notes notes(of, "NeMo");
  if (of.use.kind == ShardingKind::zero2)
    notes.add("zero2: data_parallel_sharding_strategy of Megatron FSDP says it");
  if (layout.schedule == PipelineSchedule::gpipe) notes.add("gpipe: Megatron Core has 1F1B alone");
  note_recomputation(of, notes);
  notes.add("these keys override those of a recipe of Megatron-Bridge, which has the network");
  const auto yes = [](bool is) { return is ? "true" : "false"; };
  std::string text = fmt::format("# {}\n{}model:\n", of.title(), notes.as_comments("#"));
  text += fmt::format(
      "  tensor_model_parallel_size: {}\n  pipeline_model_parallel_size: {}\n"
      "  virtual_pipeline_model_parallel_size: {}\n  context_parallel_size: {}\n"
      "  expert_model_parallel_size: {}\n  expert_tensor_parallel_size: 1\n"
      "  sequence_parallel: {}\n",
      layout.tensor, layout.pipeline,
      layout.chunks > 1 ? std::to_string(layout.chunks) : std::string("null"), layout.context,
      layout.expert > 1 ? layout.expert_ranks() : 1,
      yes(layout.tensor > 1 && layout.sequence_parallel));
  if (of.job.sequence > 0) text += fmt::format("  seq_length: {}\n", of.job.sequence);
  if (of.recomputes_blocks() && of.job.recompute.every == 1)
    text +=
        "  recompute_granularity: full\n  recompute_method: uniform\n  recompute_num_layers: 1\n";
  if (of.recomputes() == RecomputeKind::selective) text += "  recompute_granularity: selective\n";
  text += fmt::format("train:\n  micro_batch_size: {}\n  global_batch_size: {}\n",
                      of.job.batch_per_rank, of.global_batch());
  const bool overlaps = of.plan.overlap != models::Overlap::none;
  text += fmt::format(
      "ddp:\n  use_distributed_optimizer: {}\n  overlap_grad_reduce: {}\n"
      "  overlap_param_gather: {}\n  grad_reduce_in_fp32: {}\n  bucket_size: {}\n",
      yes(of.is_sharded()), yes(overlaps), yes(overlaps && of.is_sharded()),
      yes(of.reduces_in_fp32()), of.largest_bucket());
  if (of.use.kind == ShardingKind::zero2 || of.use.kind == ShardingKind::zero3)
    text += fmt::format("  use_megatron_fsdp: true\n  data_parallel_sharding_strategy: {}\n",
                        of.use.kind == ShardingKind::zero2 ? "optim_grads" : "optim_grads_params");
  if (of.is_sharded() && of.replicas() > 1)
    text += fmt::format("  num_distributed_optimizer_instances: {}\n", of.replicas());
  text += fmt::format("comm_overlap:\n  tp_comm_overlap: {}\n", yes(layout.tensor_overlap));
  text += fmt::format("mixed_precision: {}\n", of.job.precision == models::Precision::fp8
                                                   ? "bf16_with_fp8_current_scaling_mixed"
                                               : of.is_16_bit() ? "bf16_mixed"
                                                                : "fp32");
  return std::move(notes).with(std::move(text));
}

}  // namespace

const std::array<Framework, 5>& frameworks() {
  static const std::array<Framework, 5> all = {{{"fsdp2", fsdp2_text},
                                                {"deepspeed", deepspeed_text},
                                                {"megatron", megatron_text},
                                                {"torchtitan", torchtitan_text},
                                                {"nemo", nemo_text}}};
  return all;
}

}  // namespace paceline::simulator
