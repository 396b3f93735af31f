// The numbers that an optimizer keeps for each parameter, and the cost of its update.
//
//   name        FP32 numbers kept of n parameters           source
//   sgd         0
//   momentum    n; LARS, too                                 Sutskever 2013
//   adam        2 n; adamw, and lamb, which also reads       Kingma 2015; Loshchilov 2019; You 2020
//               weights and updates for two norms
//   adafactor   r + c of a matrix of r x c, n of a vector    Shazeer 2018 (arXiv 1804.04235), without a first moment
//   muon        n of a block's matrices, 2 n of all else     Jordan 2024; Liu 2025 (arXiv 2502.16982)
//   adam-8bit   n / 2 and two numbers of each 256, 2 n of    Dettmers 2022 (arXiv 2110.02861); bitsandbytes
//               tensors below 4,096
//
// An update reads gradient and weight and writes the weight, all FP32, and the 16-bit copy where there is one; it
// reads and writes what is kept. Muon orthogonalises each matrix of r x c, r <= c, by five steps of 4 r^2 c + 2 r^3
// FLOPs in 16 bits.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "models/network/work.h"

namespace paceline::models {

enum class OptimizerKind {
  stated,  // by its numbers alone, and by no name
  sgd,
  momentum,
  adam,
  adamw,
  lamb,
  adafactor,
  muon,
  adam_8bit,
};
inline constexpr std::array<std::pair<OptimizerKind, std::string_view>, 8> optimizer_kinds = {
    {{OptimizerKind::sgd, "sgd"},
     {OptimizerKind::momentum, "momentum"},
     {OptimizerKind::adam, "adam"},
     {OptimizerKind::adamw, "adamw"},
     {OptimizerKind::lamb, "lamb"},
     {OptimizerKind::adafactor, "adafactor"},
     {OptimizerKind::muon, "muon"},
     {OptimizerKind::adam_8bit, "adam-8bit"}}};

struct Optimizer {
  OptimizerKind kind = OptimizerKind::stated;
  int states = 0;  // numbers for each parameter, where they are stated

  Optimizer(OptimizerKind of) : kind(of) {}
  // An optimizer that keeps this many numbers for each parameter.
  Optimizer(int stated) : states(stated) {}

  bool operator==(const Optimizer&) const = default;
};

inline constexpr int most_optimizer_states = 16;

// The optimizer that is asked for, or else one that keeps as many numbers as is usual for the network.
struct OptimizerChoice {
  std::optional<OptimizerKind> kind = {};
  std::optional<int> states = {};  // in place of the kind
  // Whether masters and states are in the host's memory, and its processors update them (ZeRO-Offload, Ren 2021,
  // arXiv 2101.06840, 4.1).
  bool on_host = false;

  [[nodiscard]] Optimizer of(const NetworkWork& network) const {
    if (states) return *states;
    return kind ? Optimizer(*kind) : Optimizer(network.optimizer_states);
  }
  bool operator==(const OptimizerChoice&) const = default;
};

// The cost of one rank's layers.
struct OptimizerCost {
  double kept = 0;   // FP32 numbers
  double bytes = 0;  // that an update moves, without a 16-bit copy
  double flops = 0;  // in 16 bits
};
[[nodiscard]] OptimizerCost optimizer_cost(std::span<const LayerWork> layers,
                                           const Optimizer& optimizer);
[[nodiscard]] inline OptimizerCost optimizer_cost(const NetworkWork& network,
                                                  const Optimizer& optimizer) {
  return optimizer_cost(network.layers, optimizer);
}

}  // namespace paceline::models
