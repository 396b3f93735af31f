// What an iteration loses beside FLOPs and bytes: ranks that wait for the slowest, cards that heat
// each other, kernels that share the device with a collective, and fixed costs.
//
// Each effect is a Figure with a 90 % interval, from sources other than the published results that
// predictions are compared with (catalog/effects.yaml). simulator/cost/losses.h says what
// each does to an iteration.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "models/base/figure.h"
#include "models/base/units.h"

namespace paceline::models {

// From how many busy ranks of a node on they crowd each other: where four cards of a box were all
// busy, they were slower than each alone (cnn-gpu-benchmarks README); nothing is known of fewer.
inline constexpr int crowded_ranks = 4;

// How kernels of a layer get to the device, which says what a layer takes whatever the batch.
enum class Stack {
  eager,     // a framework launches one after the other
  compiled,  // the same with fused kernels, as torch.compile and XLA make them
  graphs     // CUDA graphs
};
inline constexpr std::array<std::pair<Stack, std::string_view>, 3> stacks = {
    {{Stack::eager, "eager"}, {Stack::compiled, "compiled"}, {Stack::graphs, "graphs"}}};
struct Effects {
  // Standard deviation of the compute time between ranks of one kind, over its mean. A rank keeps
  // its place in the distribution.
  Figure<double> rank_spread;
  // Standard deviation of one rank's compute time from iteration to iteration, over its mean.
  Figure<double> jitter;
  // Compute time while `crowded_ranks` or more of a node compute, over that of a rank alone; at
  // least 1.
  Figure<double> crowding;
  // Slowdown of computation beside a collective, over the structural estimate of losses.h.
  Figure<double> slowdown;
  // Share of the compute time that is bound by memory.
  Figure<double> memory_bound;
  // Time to start one collective.
  Figure<Seconds> collective_launch;
  // Time of a layer with weights (forward, backward, update) on the device that does not grow with the
  // batch.
  Figure<Seconds> layer_launch;
  // Share of layer_launch that a layer takes in mixed precision, in networks that read no sequences.
  double mixed_launch_share = 1;
  // Time that the host takes to launch all kernels of a layer with weights. The device computes what is
  // queued meanwhile: simulator/cost/compute_time.h.
  Figure<Seconds> host_launch;
  // The same in networks that read sequences, whose layers have more operations of the host beside their
  // products: casts, views, norms, masks.
  Figure<Seconds> host_launch_transformer;
  // The rate at which the processors of a node read and write the host's memory while they update weights.
  Figure<BytesPerSecond> host_update;
  // No other effect explains these standard deviations of the logarithm of predicted over measured
  // iteration time. The first is there always, the second is for each doubling of ranks beyond those
  // that computation was calibrated on, the third for each unit of exposed communication over the
  // iteration. Their squares add, and so do those of several doublings.
  Figure<double> unexplained;
  Figure<double> unexplained_doubling;
  Figure<double> unexplained_exposed;

  bool operator==(const Effects&) const = default;
};

// Gives `effects` the priors of the stack for both times of a layer (catalog/effects.yaml).
void take_stack(Stack stack, Effects& effects);

}  // namespace paceline::models
