// Where the time of a GPU's iterations went, as a trace of torch.profiler has it.
//
// The kernels between the first iteration of the trace and the last are those of its iterations, although the
// host runs ahead of them: the profiler waits for the device where it begins and ends. A moment belongs to the
// first of these that runs: a kernel of computation, one of communication (NCCL's), the host's data loader, and
// else to the host, which has launched nothing.
#pragma once

#include <optional>

#include "calibration/import/kineto_trace.h"
#include "models/base/units.h"

namespace paceline::calibration {

struct TracedSteps {
  int steps = 1;
  Seconds iteration;      // the mean, and so are the parts of it
  Seconds computation;    // kernels, copies and memsets that are not NCCL's run
  Seconds communication;  // kernels of NCCL run
  Seconds exposed;        // and no others
  Seconds input;          // nothing runs, while the host waits for its data loader
  Seconds idle;           // nothing runs otherwise
};

// Nothing where the trace has no kernels. O(events log events).
[[nodiscard]] std::optional<TracedSteps> traced_steps(const KinetoTrace& trace);

}  // namespace paceline::calibration
