// The parts of a bucket's way in an iteration, and how long each takes.
#pragma once

#include <variant>

#include "simulator/cost/k_fac_cost.h"
#include "simulator/cost/server_cost.h"

namespace paceline::simulator {

// The time of each part of a bucket's way. A part that takes no time is no task.
struct BucketTimes {
  Seconds cast;
  Seconds pack;
  Seconds all_reduce;
  Seconds unpack;
  Seconds wait = {};         // ahead of all else, beside whatever else travels
  Seconds negotiation = {};  // next; the bucket has its stream from here on
  // Times that replace some of the above, for ways to travel that have other parts.
  std::variant<std::monostate,
               ServedPhases,  // replace all_reduce. Each lane is a stream of its own
               KfacTimes>     // replace everything
      by_way = {};

  // While the bucket has its stream.
  [[nodiscard]] Seconds total() const { return negotiation + cast + pack + all_reduce + unpack; }

  // The phases on servers; none where none serve.
  [[nodiscard]] const ServedPhases& served() const;
  // Null where the plan is none of K-FAC.
  [[nodiscard]] const KfacTimes* k_fac() const { return std::get_if<KfacTimes>(&by_way); }
};

}  // namespace paceline::simulator
