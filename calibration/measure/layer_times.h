// Forward and backward time of each layer of a network, by the runtime's own kernels, with data
// that was drawn: on all ranks at once, as in training, where they share memory and caches; and
// again while gradients travel between them without a pause, which takes cores and memory, too.
#pragma once

#include <string>
#include <vector>

#include "calibration/measure/progress.h"
#include "models/network/network.h"
#include "models/profile/profile.h"
#include "runtime/transport/transport.h"

namespace paceline::calibration {

struct LayerTimesRequest {
  const models::Network& network;
  int batch = 1;
  models::Precision precision = models::Precision::fp32;  // mixed: BF16 storage and arithmetic
  int threads = 1;
  int iterations = 3;  // at least 1, after one that warms caches; more where they fit in `time`
  Seconds time{2};     // for either kind of iterations
  Progress progress = {};
};

// All ranks call it. Rank 0 returns the figures of the rank whose layers take longest in all, since
// the others wait for that one; other ranks return nothing. A figure is the median of the
// iterations with its interval (fit/statistics.h), measured. With one rank there is no traffic, and
// there are no figures beside it. A layer that another one does on the way (a ReLU in a
// convolution) takes no time. Throws as runtime::TrainableNetwork does, and RunError that names a
// rank that is gone.
//
// Traffic is an all-reduce of the network's gradients, fused in a ring, by the communication thread
// of training (runtime/exchange/gradient_exchange.h). Two of them are under way at any time. They
// outlast a layer: they carry as many of the gradients as that takes, or all of them several times
// (up to 256 MiB).
[[nodiscard]] std::vector<models::CalibratedLayer> measure_layers(runtime::Transport& transport,
                                                                  const LayerTimesRequest& request,
                                                                  const std::string& source);

}  // namespace paceline::calibration
