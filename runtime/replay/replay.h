// Replay: a plan with synthetic compute. Layers take stated times, in which the rank sleeps and
// burns no CPU; gradients are packed, cast and all-reduced for real, by the exchange and the
// executor that training uses. Buckets that wait for a cycle, as Horovod's do, are given to the
// exchange this much later than their last gradient is there; they need wait-free overlap. It measures communication and overlap of a network that would not
// fit, or would not be fast enough, on the machines at hand.
#pragma once

#include <span>
#include <vector>

#include "models/base/units.h"
#include "models/network/work.h"
#include "models/plan/plan.h"
#include "runtime/exchange/recorder.h"
#include "runtime/transport/transport.h"

namespace paceline::runtime {

// Synthetic durations of a layer's passes.
struct LayerDuration {
  Seconds forward;
  Seconds backward;
};

struct ReplayRequest {
  const models::NetworkWork& network;  // whose gradients travel
  const models::Plan& plan;            // of that network, for as many ranks as there are
  std::vector<LayerDuration> layers;   // one for each of network.layers
  Seconds update;
  int warm_up = 1;  // iterations that are not reported; the first of them checks the sums
  int iterations = 5;
  Recorder* recorder = nullptr;  // may be null; iteration 0 is the first one that is reported
};

// What this rank measured.
struct ReplayOutcome {
  std::vector<Seconds> iterations;  // from one update to the next
  std::vector<Seconds> exposed;     // how long the update waited for gradients
};

// All ranks call it. Throws InputError as GradientExchange does, or if there is no layer or no
// iteration; RunError that names a rank that is gone, or if a sum over the ranks is wrong.
[[nodiscard]] ReplayOutcome replay(Transport& transport, const ReplayRequest& request);

}  // namespace paceline::runtime
