// An operation as a graph of cuDNN's: its tensors, with the roles' numbers as unique ids, and its
// nodes. Building one checks shapes; whether an engine computes it is for the heuristics to say.
#pragma once

#include "runtime/network/cudnn/descriptor.h"
#include "runtime/network/steps/operation.h"

namespace paceline::runtime::cudnn {

using steps::Operation;

// The finalised graph. Throws RunError that names the operation if cuDNN refuses it.
[[nodiscard]] Descriptor operation_graph(const Operation& operation, models::NumberType storage);

}  // namespace paceline::runtime::cudnn
