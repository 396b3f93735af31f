// Rooflines for the layers of a transformer, from rates of single kernels that were measured
// (models::TransformerKernels), in mixed precision and FP8:
//
//   matrix products  peak x product, and less of it where the smaller side of the weights is below 4,096: a line
//                    over its logarithm through `small_share` at 512, `middle_share` at 2,048 and 1; in FP8 at
//                    `fp8` times that rate from 4,096 on, at 0.15 of that gain up to 1,024, and on a line over the
//                    logarithm between them. Each operand that is no weight is then cast, which reads it and writes
//                    two copies, for both orders of a product. A product of few tokens takes `wave_share` times as
//                    long. Gradients of weights do not, because their outputs are features
//   experts          the same, and the time of their memory traffic comes on top of it, because a few tokens of
//                    each expert hide none of it; by expert_load (expert_load.h) longer where ranks have
//                    different experts
//   routing          0.50 of the memory's bandwidth, and so combining
//   attention        attention x s / (s + half_rate_sequence) over s elements, in proportion to w / (w + 32) for
//                    heads of width w; backward 0.82 of it
//   norms            0.60 of the memory's bandwidth, backward 0.33
//   loss             0.30 of it
//   all others       the device's memory efficiency
//
// A backward pass also adds up the gradients of a tensor that two layers read (at an add), and sums that of a
// bias over all elements. Only attention is at its fast or slow end: how fast it is depends on the
// library, and how much of a step it is on the sequence. All else that is not known is in `reached`.
// Sources: docs/sources.md, kernels of transformers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/base/precision.h"
#include "models/cluster/cluster.h"
#include "models/network/work.h"
#include "simulator/cost/communication_cost.h"

namespace paceline::simulator {

struct Roofline {
  FlopsPerSecond flops;
  BytesPerSecond memory;

  bool adds = false;  // whether memory traffic is hidden by no products
  double times = 1;   // the work of the rank that has most of it, over the mean

  [[nodiscard]] Seconds time(double flop_count, Bytes bytes) const {
    const Seconds computing = Flops{flop_count} / flops;
    const Seconds moving = bytes / memory;
    return times * (adds ? computing + moving : std::max(computing, moving));
  }
};

// The rooflines of both passes of a layer, and activation elements that are moved beside its own: by its backward
// pass, and by casts ahead of either pass.
struct LayerRooflines {
  Roofline forward;
  Roofline backward;
  std::int64_t also_moved = 0;
  std::int64_t forward_cast = 0;
  std::int64_t backward_cast = 0;
};

// Whether layers take what kernels of transformers reach: the attention of the network is fused, and the device
// has a table of kernels.
[[nodiscard]] bool is_by_kernels(const models::NetworkWork& network, const models::Device& device,
                                 models::Precision precision);

// Returns the time of an output of a product of `tokens` x `features` over that with 8,192 tokens. Multiprocessors compute
// one tile each at a time, so that a product takes ceil(tiles / multiprocessors) waves, the last of which is not full. The
// tile is the best of 256 x 128, 128 x 256, 128 x 128 (at 0.9 of the rate), 128 x 64 (0.72) and 64 x 64 (0.5).
[[nodiscard]] double wave_share(double tokens, double features, int multiprocessors);

// The network's samples have its sequence, and a rank computes `batch` of them at a time. `peak` is the device's dense
// peak.
[[nodiscard]] LayerRooflines transformer_rooflines(const models::NetworkWork& network,
                                                   const models::LayerWork& layer, int batch,
                                                   const models::Device& device,
                                                   models::Precision precision, FlopsPerSecond peak,
                                                   Bound bound);

}  // namespace paceline::simulator
