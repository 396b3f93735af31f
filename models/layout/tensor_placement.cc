// Tests: tests/models/sharding_test.cc.
#include "models/layout/tensor_placement.h"

#include <array>
#include <utility>

#include "models/base/error.h"
#include "models/base/names.h"

namespace paceline::models {
namespace {

constexpr std::array<std::pair<TensorPlacement, std::string_view>, 3> placement_names = {
    {{TensorPlacement::replicated, "replicated"},
     {TensorPlacement::split, "split"},
     {TensorPlacement::partial, "partial"}}};

}  // namespace

std::string_view name(TensorPlacement placement) {
  return name_in(placement_names, placement);
}

std::optional<Collective> collective_between(TensorPlacement from, TensorPlacement to) {
  PACELINE_ASSERT(to != TensorPlacement::partial, "no reader wants summands");
  const bool whole = to == TensorPlacement::replicated;
  switch (from) {
    case TensorPlacement::partial:
      return whole ? Collective::all_reduce : Collective::reduce_scatter;
    case TensorPlacement::split:
      return whole ? std::optional(Collective::all_gather) : std::nullopt;
    case TensorPlacement::replicated:
      break;
  }
  return std::nullopt;
}

}  // namespace paceline::models
