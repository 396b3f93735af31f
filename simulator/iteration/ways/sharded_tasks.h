// The passes of an iteration whose plan is sharded, with the collectives among them, and what follows the
// update (models/layout/sharding.h says which there are; docs/models.md, "Sharded training").
//
// Where parameters are gathered before passes, tasks and edges are those of PyTorch's FSDP2:
//   forward   gather(i + 1) runs beside the forward pass of unit i. It waits for the copy out of unit i - 1,
//             because no more than two gathered units wait for their passes
//   backward  before its pass unit i is copied out, then the gather of the unit that is next is issued, and after the
//             pass its gradients are copied in, once the reduction of the unit before is done, and reduced
// Gathers and reductions of one communicator run one after the other, as they were issued. An all-reduce
// over replicas has a stream of its own. The parts of the network that are in no block stay gathered from their
// forward to their backward pass, as FSDP's root does. Without overlap, nothing is computed beside a
// collective.
//
// Batches before the last, if each has its collectives, are one whose tasks take as many times as long.
#pragma once

#include <vector>

#include "simulator/iteration/dag_builder.h"

namespace paceline::simulator {

// The layers of a bucket, whose parameters are gathered together.
struct ShardUnit {
  int first = 0;         // of its layers with gradients, in forward order
  int last = 0;          // the same
  bool is_root = false;  // in no block
};
// One unit for each bucket of the plan, in backward order.
[[nodiscard]] std::vector<ShardUnit> shard_units(const DagBuilder& dag);

// The collectives of units, and the copies beside them, of one stage. Each adds a task and returns it.
class ShardTasks {
 public:
  explicit ShardTasks(DagBuilder& dag);

  // Tasks take this many times as long from now on, because they stand for as many batches.
  void take_times(int times) { times_ = times; }
  [[nodiscard]] bool overlaps() const { return overlaps_; }
  // Whether parameters are gathered before passes.
  [[nodiscard]] bool gathers() const { return gathers_; }
  // The last task of computation.
  [[nodiscard]] int computed() const { return computed_; }

  int add_compute(TaskKind kind, int index, Seconds duration);
  // Starts when `ready` is done, if that is a task.
  int add_gather(std::size_t unit, int ready);
  // Waits for the gather.
  int copy_out(std::size_t unit, int gathered);
  // Sums the unit's gradients and sets dag.delivered.
  void reduce(std::size_t unit);
  // Adds the exchange of a layer's output between ranks of one sample, if it takes time.
  void exchange(std::size_t layer, Seconds duration);

 private:
  [[nodiscard]] const ShardTimes& of(std::size_t unit) const {
    return *dag_.buckets[unit].sharded();
  }
  int add_collective(TaskKind kind, int stream, std::size_t unit, Seconds duration, Bytes moved,
                     int ready);

  DagBuilder& dag_;
  const models::ShardUse& use_;
  bool overlaps_;
  bool gathers_;
  int times_ = 1;
  int computed_ = -1;  // the last task of computation
  int sent_ = -1;      // the last collective
  int reduced_ = -1;   // the last reduce-scatter
};

// Adds forward and backward passes and the collectives in them, and sets dag.forward, dag.backward and
// dag.delivered.
void add_sharded_passes(DagBuilder& dag);
// Adds what travels after the updates, and lets the next gathers wait for them.
void add_after_sharded_update(DagBuilder& dag);

}  // namespace paceline::simulator
