// The cost of interruptions of a training run: the work since the last checkpoint is done again, and it takes a
// time until ranks train.
//
// Interruptions come as a Poisson process, at a mean time M between them that falls with the devices. A run
// writes a checkpoint, which takes d, behind every t of work, and after an interruption needs R until it goes on
// from the last one; an interruption in that time begins it anew. Work of W then takes (Daly 2006, Future Generation
// Computer Systems 22, equation 13)
//
//   T = M e^(R/M) (e^((t + d)/M) - 1) W / t
//
// The interval that makes T least is found by bisection of its derivative; for d much smaller than M it is
// sqrt(2 d M) - d (Young 1974; Daly's first order).
#pragma once

#include <cstdint>
#include <vector>

#include "models/base/units.h"

namespace paceline::simulator {

struct Interruptions {
  Seconds between;     // mean time between those of the job
  Seconds recovery;    // from an interruption until ranks train again
  Seconds checkpoint;  // for which a run waits while one is written
};

// The work between two checkpoints that makes a run shortest, less than M; 0 where they take no time.
[[nodiscard]] Seconds best_interval(const Interruptions& of);

// Expected time for work that takes `work` without interruptions and checkpoints.
[[nodiscard]] Seconds interrupted_time(const Interruptions& of, Seconds work, Seconds interval);

// Times of simulated runs, ascending. Each draws its interruptions anew.
[[nodiscard]] std::vector<Seconds> interrupted_times(const Interruptions& of, Seconds work,
                                                     Seconds interval, int runs,
                                                     std::uint64_t seed);

}  // namespace paceline::simulator
