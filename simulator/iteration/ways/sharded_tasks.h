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

#include "simulator/iteration/dag_builder.h"

namespace paceline::simulator {

// Adds forward and backward passes and the collectives in them, and sets dag.forward, dag.backward and
// dag.delivered.
void add_sharded_passes(DagBuilder& dag);
// Adds what travels after the update.
void add_after_sharded_update(int update, DagBuilder& dag);

}  // namespace paceline::simulator
