// The share of its peak rate at which a device computes in training.
//
// MFU counts the FLOPs of the model, 6 for each weight of a matrix product and token and those of attention's
// products, and HFU those that the device computes, with scores and activations that are computed anew. Both are
// over the dense peak of the precision (Chowdhery 2022, PaLM, appendix B; Korthikanti 2022, 6). Sources
// differ in whether causal attention counts with half of its square, as it is computed, or with all of it, as in
// PaLM's formula; both are here.
#pragma once

#include <optional>

#include "models/base/units.h"
#include "simulator/prediction/prediction_request.h"

namespace paceline::simulator {

struct Utilization {
  PerSecond tokens;  // of all ranks
  PerSecond tokens_of_rank;
  double mfu = 0;
  double mfu_full_square = 0;
  double hfu = 0;
};

// At this throughput of all ranks, in samples. Nothing for networks that read no sequence.
[[nodiscard]] std::optional<Utilization> utilization(const PredictionRequest& request,
                                                     PerSecond throughput);

}  // namespace paceline::simulator
