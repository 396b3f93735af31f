// A timeline as Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
//
// One process for the prediction, one named track for each resource, one complete event ("X") for
// each task of two iterations of the steady state, in microseconds. Events of a track never
// overlap: a resource runs one task at a time. Args carry the layer or bucket, bytes, schedule
// and provenance.
#pragma once

#include <string>

#include "models/network/work.h"
#include "simulator/iteration/prediction.h"

namespace paceline::simulator {

struct TraceLabels {
  std::string title;  // "resnet50 on jizhi-p40, 1024 ranks, hybrid, fp16"
};

[[nodiscard]] std::string chrome_trace(const models::NetworkWork& network, const StrategyRun& run,
                                       const TraceLabels& labels);

}  // namespace paceline::simulator
