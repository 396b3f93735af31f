// A plan as the arguments of PyTorch's DistributedDataParallel: what comes nearest to it, and how much
// longer an iteration is then predicted to take than with the plan.
//
// DDP closes a bucket once it holds its cap, counted in bytes of the parameters, which are FP32. By
// default the cap is 25 MiB and that of the first bucket 1 MiB. From PyTorch 2.3 on, a cap that is
// given is the first bucket's, too; before, the first bucket has
// torch.distributed._DEFAULT_FIRST_BUCKET_BYTES. So of a plan DDP can be told one cap. This is the
// default, or the one of a small grid with the least predicted iteration: 1 MiB to that which puts
// all gradients into one bucket, and the plan's largest bucket. The all-reduce is that of the process
// group: NCCL's own on GPUs, and a ring as Gloo's elsewhere (torch/nn/parallel/distributed.py; key
// "DDP" in docs/sources.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/plan/plan.h"
#include "simulator/export/nccl_plan.h"
#include "simulator/prediction/prediction.h"

namespace paceline::simulator {

// What DDP makes of a cap, and the iteration that is predicted with it.
struct DdpCap {
  std::optional<Bytes> cap;  // of FP32 parameters; nothing: DDP's default
  Seconds iteration{0};
  int buckets = 0;
};

struct DdpSettings {
  DdpCap best = {};
  models::Plan plan = {};  // that DDP makes of it
  DdpCap by_default = {};
  Seconds asked{0};      // predicted, with the plan
  bool is_plan = false;  // whether the buckets of `best` are the plan's
  // What the first bucket's default has to be before PyTorch 2.3, where that changes the buckets.
  std::optional<Bytes> first_bucket = {};
  std::string_view calls;  // the strategy by which DDP is predicted: ddp or ddp-ring
};

// The argument that DDP takes, "bucket_cap_mb=63"; empty for its default.
[[nodiscard]] std::string argument(const DdpCap& cap);

// The request's network, ranks and wire type must be the plan's. Throws as Predictor does.
[[nodiscard]] DdpSettings ddp_settings(const models::Plan& plan, const PredictionRequest& request);

// The lines of a Python script, with what they cannot say as comments.
[[nodiscard]] ExportedText ddp_text(const std::string& title, const models::Plan& plan,
                                    const PredictionRequest& request);

}  // namespace paceline::simulator
