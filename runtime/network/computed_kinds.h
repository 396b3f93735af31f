// The kinds of layers that runtime/network computes on CPUs, and those that it computes on GPUs, too. All others are
// predicted, and not trained yet.
#pragma once

#include <type_traits>

#include "models/network/layer.h"

namespace paceline::runtime {

template <class Kind, class... Kinds>
inline constexpr bool is_one_of = (std::is_same_v<Kind, Kinds> || ...);

template <class Kind>
inline constexpr bool is_computed =
    !is_one_of<Kind, models::Tanh, models::SelectTokens, models::FirstToken,
               models::StochasticDepth, models::Scale, models::Rearrange, models::Slice,
               models::Pad, models::ClassToken, models::RelativePositionBias, models::MeanToken,
               models::RouteTokens, models::ExpertLinear, models::CombineTokens>;

template <class Kind>
inline constexpr bool is_computed_on_gpus =
    is_computed<Kind> &&
    !is_one_of<Kind, models::Embedding, models::Linear, models::TiedLinear, models::LayerNorm,
               models::Gelu, models::Silu, models::Multiply, models::Attention>;

}  // namespace paceline::runtime
