#include "runtime/probe/device_probe.h"

#include <numeric>

namespace paceline::runtime {

double IterationTimes::sum() const {
  return std::accumulate(forward.begin(), forward.end(), 0.0) +
         std::accumulate(backward.begin(), backward.end(), 0.0) + update;
}

}  // namespace paceline::runtime
