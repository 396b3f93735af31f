// A plan of a language model as the settings of the frameworks that shard it: PyTorch's FSDP2, DeepSpeed,
// Megatron-LM, torchtitan and NeMo (Megatron-Bridge).
//
// They say what a plan says of sharding, layout, batches, precision and recomputation, and not the network, its
// data or its optimizer. Names and defaults are those of pytorch/pytorch torch/distributed/fsdp/_fully_shard,
// deepspeedai/DeepSpeed deepspeed/runtime/zero/config.py, NVIDIA/Megatron-LM megatron/training/arguments.py,
// pytorch/torchtitan torchtitan/config/job_config.py and NVIDIA-NeMo/Megatron-Bridge (shared/reference/sharded.md,
// 1, has the snapshots). What a framework cannot be told is a note.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "models/plan/plan_json.h"
#include "simulator/export/nccl_plan.h"

namespace paceline::simulator {

// Throws InputError where the plan is not sharded or replicated data parallelism, or does not say its job.
using FrameworkText = ExportedText (*)(const models::PlanDocument& document);

struct Framework {
  std::string_view name;  // of the format
  FrameworkText text;
};

// fsdp2, deepspeed, megatron, torchtitan, nemo.
[[nodiscard]] const std::array<Framework, 5>& frameworks();

}  // namespace paceline::simulator
