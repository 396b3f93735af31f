// Runs the ranks of a job as threads of this process.
#pragma once

#include <functional>

#include "models/base/units.h"
#include "runtime/channel/endpoint.h"

namespace paceline::runtime {

// Runs `work` once for each rank, each on a thread of its own, with its channel and its transport
// of `streams` streams. A rank whose work throws leaves the job, so that the others do not wait for
// it. Rethrows the first error that is not the loss of a peer, since such an error is why peers
// were lost; or else the first of all.
void run_as_threads(int ranks, int streams, Seconds patience,
                    const std::function<void(const Endpoint&)>& work);

}  // namespace paceline::runtime
