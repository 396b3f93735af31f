// How the all-reduces of a plan are timed, as a value; plan_timing.h chooses it and does it.
#pragma once

#include "simulator/engine/engine_kind.h"

namespace paceline::simulator {

// What travels beside a bucket while its all-reduce is timed.
enum class Beside {
  nothing,         // buckets travel one at a time: each is timed alone
  other_buckets,   // several are in flight, and share links (in_flight.h)
  buckets_behind,  // each rank starts the next bucket at its own time (ordered_collectives.h)
};

struct TimingMethod {
  Beside beside = Beside::nothing;
  EngineKind engine = EngineKind::step;  // that times the all-reduces; never `automatic`
  // Messages that the flow engine would follow, where the step engine takes its place because they
  // are too many; else 0.
  double not_followed = 0;
};

// Whether a row may take long.
enum class TimeBudget {
  unlimited,  // whatever it takes, up to most_followed_when_named (effort.h)
  bounded,  // no more messages than effort.h allows a row of a table that answers at once, unless an
            // engine was asked for
  bounded_by_any_engine,  // the same, and a flow engine that was asked for is not made to follow more
                          // than most_followed_when_asked
};

}  // namespace paceline::simulator
