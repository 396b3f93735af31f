// The passes of an iteration on the stages of a pipeline (models/layout/pipeline_order.h): the tasks of one rank of
// each stage, with what they send to each other.
//
// A pass of a batch over a chunk of the network is one task, and what its layers exchange meanwhile another
// behind it. The last backward pass over a chunk is a task for each layer, because gradients travel beside it.
// Parameters that are kept in shards are gathered once, before a chunk's first pass, and gradients
// are summed once, after the last: PyTorch's stages (torch/distributed/pipelining/stage.py) keep both whole in between.
#pragma once

#include "simulator/iteration/dag_builder.h"

namespace paceline::simulator {

// Sets dag.forward, dag.backward, and for sharded plans dag.delivered.
void add_pipeline_passes(DagBuilder& dag);

}  // namespace paceline::simulator
