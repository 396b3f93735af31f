// Shardings of data-parallel training: what of parameters, gradients and optimizer states a rank keeps.
//
// A sharding places each of the three on the axis of shards. These placements decide which collectives run,
// when they run, and what a rank keeps in its memory; no other code knows a sharding by its name. A backward
// pass leaves gradients partial, a pass reads parameters replicated, and the update runs where the
// states are:
//
//   before a pass     parameters at rest -> replicated
//   after a backward  partial -> the gradients' placement, in each pass whose gradients are kept split,
//                     else once, -> the states' placement, before the update
//   after the update  the states' placement -> parameters at rest
//
// Sources: Rajbhandari 2020, ZeRO (arXiv 1910.02054), 5; Zhao 2023, PyTorch FSDP (arXiv 2304.11277), 3.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "models/layout/tensor_placement.h"

namespace paceline::models {

enum class ShardingKind { none, zero1, zero2, zero3 };

// The placement of each on the axis of shards while no pass and no update uses it.
struct Sharding {
  ShardingKind kind = ShardingKind::none;
  std::string_view name;
  TensorPlacement parameters = TensorPlacement::replicated;
  TensorPlacement gradients = TensorPlacement::replicated;
  TensorPlacement states = TensorPlacement::replicated;  // with FP32 masters

  // The collectives that gather parameters before a pass, and after the update.
  [[nodiscard]] std::optional<Collective> before_pass() const {
    return collective_between(parameters, TensorPlacement::replicated);
  }
  [[nodiscard]] std::optional<Collective> after_update() const {
    return collective_between(states, parameters);
  }
  // The collective that sums gradients; and whether each of several passes has it, or only the last one.
  [[nodiscard]] std::optional<Collective> of_gradients() const {
    return collective_between(TensorPlacement::partial, states);
  }
  [[nodiscard]] bool sums_in_each_pass() const { return gradients == TensorPlacement::split; }
};

// none, zero1, zero2, zero3.
[[nodiscard]] std::span<const Sharding> shardings();
[[nodiscard]] const Sharding& sharding(ShardingKind kind);
[[nodiscard]] std::string_view name(ShardingKind kind);
// Throws InputError that suggests the nearest name.
[[nodiscard]] ShardingKind sharding_from_name(std::string_view text);

// How a plan is sharded. It is an entry of the plan's schedules. The ranks are a mesh of two axes: groups
// of `shards` neighbours share one copy of what is split, and ranks at the same place of all groups are
// replicas of each other, whose gradients an all-reduce sums (hybrid sharding).
struct ShardUse {
  ShardingKind kind = ShardingKind::none;
  int shards = 1;       // ranks of a group; divides the plan's ranks
  bool reshard = true;  // whether a rank drops gathered parameters after a forward pass

  // The shards of experts' gradients, where every `parts`-th rank has the same experts. Either number divides the
  // other.
  [[nodiscard]] int shards_of_parts(int parts) const { return parts < shards ? shards / parts : 1; }

  bool operator==(const ShardUse&) const = default;
};

}  // namespace paceline::models
