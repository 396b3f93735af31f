// The placement of a tensor on one axis of a mesh of ranks, and the collective that changes it.
//
// Parallelism is described by such placements (docs/design.md, "Layouts"): where a reader of a tensor wants
// another placement than its writer leaves, the table below names what travels. The names are those of
// PyTorch's DTensor.
#pragma once

#include <optional>
#include <string_view>

#include "models/collective/catalogue.h"

namespace paceline::models {

enum class TensorPlacement {
  replicated,  // each rank of the axis has the whole tensor
  split,       // rank i has part i of it
  partial,     // each rank has a summand as large as the tensor
};

[[nodiscard]] std::string_view name(TensorPlacement placement);

// The collective that makes `to` of `from`:
//   partial -> replicated  all-reduce
//   partial -> split       reduce-scatter
//   split -> replicated    all-gather
// Nothing for a placement that stays, and for replicated -> split, where each rank keeps its part. No
// reader wants summands: `to` must not be partial.
[[nodiscard]] std::optional<Collective> collective_between(TensorPlacement from,
                                                           TensorPlacement to);

}  // namespace paceline::models
