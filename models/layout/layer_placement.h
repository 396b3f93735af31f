// The placements of a transformer's layers on the axis of tensor parallelism: the table of rank_work.h as values.
// Predictions read them (rank_work.h), and so do networks that compute (tensor_part.h).
#pragma once

#include <vector>

#include "models/layout/tensor_placement.h"
#include "models/network/work.h"

namespace paceline::models {

// An activation's placement on the tensor axis.
struct Activation {
  TensorPlacement placement = TensorPlacement::replicated;
  bool by_features = false;  // where it is split

  [[nodiscard]] bool is_split() const { return placement == TensorPlacement::split; }
  bool operator==(const Activation&) const = default;
};
inline constexpr Activation replicated{};
inline constexpr Activation partial{TensorPlacement::partial, false};
inline constexpr Activation by_features{TensorPlacement::split, true};
inline constexpr Activation by_elements{TensorPlacement::split, false};

// How a layer's weights are split.
enum class WeightSplit { on_all, by_outputs, by_inputs, by_entries };

struct LayerPlacement {
  Activation takes;
  Activation leaves;
  WeightSplit weights = WeightSplit::on_all;
};

// The placements of all layers, where norms and residuals are `between`: split by elements with sequence parallelism,
// else replicated. Throws InputError that names --tensor for a layer that cannot be split.
[[nodiscard]] std::vector<LayerPlacement> layer_placements(const NetworkWork& network,
                                                           Activation between);

// The dual of a placement: that of the gradient which a layer leaves at what it took so.
[[nodiscard]] Activation gradient_left(const LayerPlacement& reader);
// And that in which it takes the gradient of what it left so.
[[nodiscard]] Activation gradient_taken(const LayerPlacement& writer);

// The attention that reads queries, keys and values side by side from this layer; null where none does.
[[nodiscard]] const LayerWork* attention_of_joint_heads(const NetworkWork& network,
                                                        std::size_t layer);

}  // namespace paceline::models
