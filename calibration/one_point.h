// Calibration of one parameter from one published point.
//
// Where a paper gives a single efficiency of its cluster, one parameter can be fitted to it: the
// latency of the NIC as a step of the all-reduce sees it, including what the library and the GPUs
// add. The point is then spent: its row is `calibrated`, and no prediction is tested by it.
#pragma once

#include <string>

#include "models/base/figure.h"
#include "models/plan/strategy.h"
#include "simulator/prediction/prediction.h"

namespace paceline::calibration {

struct EfficiencyPoint {
  double efficiency = 0;  // as published, a share: 0.09
  double rounding = 0;    // half of its last digit: 0.0005
  std::string source;
};

// The NIC latency at which the request's prediction of `strategy` has the point's efficiency, to
// 1e-9 relative. Its interval is that of the middle 90 % of all efficiencies that round to the
// point's. The request's profile says everything but the NIC latency. Throws RunError if no latency
// up to 10 ms gives the point.
[[nodiscard]] Figure<Seconds> calibrate_nic_latency(const simulator::PredictionRequest& request,
                                                    const models::Strategy& strategy,
                                                    const EfficiencyPoint& point);

}  // namespace paceline::calibration
