// The times of a bucket in an iteration: its all-reduce, and beside it casts, packing, and what the system
// that the plan is of spends to hand it over.
#pragma once

#include <variant>

#include "models/base/precision.h"
#include "models/plan/plan.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/cost/k_fac_cost.h"
#include "simulator/cost/server_cost.h"
#include "simulator/cost/shard_cost.h"
#include "simulator/planner/interval_cost.h"

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
               KfacTimes,     // replace everything
               ShardTimes>    // the same
      by_way = {};

  // While the bucket has its stream.
  [[nodiscard]] Seconds total() const { return negotiation + cast + pack + all_reduce + unpack; }

  // The phases on servers; none where none serve.
  [[nodiscard]] const ServedPhases& served() const;
  // Null where the plan is none of K-FAC.
  [[nodiscard]] const KfacTimes* k_fac() const { return std::get_if<KfacTimes>(&by_way); }
  // Null where the plan is not sharded.
  [[nodiscard]] const ShardTimes* sharded() const { return std::get_if<ShardTimes>(&by_way); }
};

// The times of a bucket besides its all-reduce and the start of it. A cast reads one type and writes
// the other. Packing and unpacking read and write each byte once; a bucket of one tensor is sent from
// where it lies. In mixed precision gradients are FP16, and the update reads the wire type itself.
// `memory` is the bandwidth of the device's memory. Where the cost has a transport whose copies were
// calibrated, the times are those of our runtime.
[[nodiscard]] BucketTimes bucket_times(const models::Plan& plan, const models::Bucket& bucket,
                                       models::Precision precision, BytesPerSecond memory,
                                       const CommunicationCost& cost);

// The same as numbers for a planner: the sum of them is linear in the elements.
[[nodiscard]] BucketAside bucket_aside(models::WireType wire, int ranks,
                                       models::Precision precision, BytesPerSecond memory,
                                       const CommunicationCost& cost);

// Adds what the plan's system spends on the bucket (simulator/cost/dispatch_cost.h): its cycle, its
// negotiation, the hand-over, and the copies to and from the host, which change `times.all_reduce`.
void add_dispatch(const models::Plan& plan, const models::Bucket& bucket,
                  const CommunicationCost& cost, Bound bound, BucketTimes& times);

}  // namespace paceline::simulator
