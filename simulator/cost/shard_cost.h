// How long the parts of a bucket take that a sharded plan has in the place of an all-reduce
// (models/layout/sharding.h), after PyTorch's FSDP2 (torch/distributed/fsdp/_fully_shard). For U parameters
// in a bucket, w bytes of a parameter in the forward pass and g of a gradient on the wire, M the memory's
// effective bandwidth, s shards of a group and r replicas of each:
//
//   gather       all-gather of w U over the shards
//   copy out     2 w U / M: each tensor is copied out of the gathered buffer, on the compute stream
//   copy in      (w + g) U / M: gradients are cast into the buffer that is reduced, on the compute stream
//   reduce       reduce-scatter of g U over the shards
//   all-reduce   of g U / s over the replicas
//
// The group of an expert's gradient has the ranks with the same experts.
//
// The update is that of a shard. What is left out: the cast of a shard of parameters before a gather (1/s of
// the bucket), padding of tensors to a multiple of the shards, and the all-reduce of one number by which
// gradients are clipped.
#pragma once

#include "models/layout/sharding.h"
#include "models/network/work.h"
#include "models/plan/plan.h"
#include "simulator/cost/compute_time.h"

namespace paceline::simulator {

struct ShardTimes {
  Seconds gather;
  Seconds copy_out;
  Seconds copy_in;
  Seconds reduce;
  Seconds all_reduce;

  Bytes gathered{0};    // of a gather, over all shards
  Bytes reduced{0};     // of a reduce-scatter
  Bytes replicated{0};  // of an all-reduce

  // While communication goes on in a batch that gathers before both passes.
  [[nodiscard]] Seconds communication() const { return 2 * gather + reduce + all_reduce; }
};

// Whether some of a bucket's gradients are in no block, so that its parameters stay gathered between passes.
[[nodiscard]] bool holds_root(const models::Bucket& bucket, const models::NetworkWork& network);

// How often an iteration gathers and reduces each bucket of a plan, with `batches` of a rank in it.
struct ShardTraffic {
  int gathers = 0;
  int reductions = 0;
};
[[nodiscard]] ShardTraffic shard_traffic(const models::ShardUse& use, int batches);

// The parameters that a rank keeps of what is split, where every `parts`-th rank has the same experts.
[[nodiscard]] double split_parameters(const models::NetworkWork& network,
                                      const models::ShardUse& use, int parts);

// The compute times of a rank of a sharded plan: with this share of the update where states are split, and with earlier batches as
// `repeated` ones where each batch has its communication.
[[nodiscard]] ComputeTimes sharded_compute(ComputeTimes compute, const models::ShardUse& use,
                                           double share_of_update);

}  // namespace paceline::simulator
