// The ranks of a job as threads of one process: for tests, and for training on one machine without
// MPI.
//
// A message is copied once, from the sender's memory to the receiver's: a large one by the receiver
// where each rank has a core of its own, any other by whichever of the two comes second. Who waits spins, then yields, then sleeps until a message of its rank is done.
#pragma once

#include <memory>
#include <vector>

#include "models/base/units.h"
#include "runtime/transport/transport.h"

namespace paceline::runtime {

// The transports of ranks 0 .. ranks - 1, one for each thread to own. A transport that is destroyed
// is gone for its peers; the destructor waits for copies of its rank's memory that are under way.
// `cores` is how many the ranks have; 0 means those of this machine. Throws InputError unless ranks
// and streams are at least 1 and patience is positive.
[[nodiscard]] std::vector<std::unique_ptr<Transport>> thread_transports(
    int ranks, int streams = 1, Seconds patience = Seconds{300}, int cores = 0);

}  // namespace paceline::runtime
