// A plan as Horovod's environment: what comes nearest to it, and how much longer an iteration is then
// predicted to take than with the plan.
//
// Horovod fuses what is there, once in a cycle, up to a threshold. It has no buckets of its own, one
// all-reduce for all of them (NCCL's, which models/plan has as a ring), and a hierarchical one whose
// groups are the nodes. So of a plan it can be told two numbers and that choice. The numbers are those
// of a small grid with the least predicted iteration: thresholds of 0, the plan's largest bucket, and
// the powers of two from 64 KiB to 256 MiB; cycles of 0.5 to 10 ms. The environment variables are those
// of Horovod 0.28 (horovod/common/operations.cc; key "Horovod" in docs/sources.md).
#pragma once

#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/export/nccl_plan.h"
#include "simulator/prediction/prediction.h"

namespace paceline::simulator {

struct HorovodSettings {
  Bytes fusion{0};  // on the wire, as Horovod counts it where gradients are compressed
  Seconds cycle{0};
  bool hierarchical = false;
  Seconds iteration{0};    // predicted, with these settings
  Seconds asked{0};        // predicted, with the plan
  models::Plan plan = {};  // that Horovod would make
};

// The variables of fusion and cycle, "HOROVOD_FUSION_THRESHOLD=67108864" and "HOROVOD_CYCLE_TIME=0.5".
[[nodiscard]] std::vector<std::string> variables(const HorovodSettings& settings);

// The request's network, ranks and wire type must be the plan's. Throws as Predictor does.
[[nodiscard]] HorovodSettings horovod_settings(const models::Plan& plan,
                                               const PredictionRequest& request);

// The variables, one a line, for a shell.
[[nodiscard]] ExportedText horovod_text(const std::string& title, const models::Plan& plan,
                                        const PredictionRequest& request);

}  // namespace paceline::simulator
