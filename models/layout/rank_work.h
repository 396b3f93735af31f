// The share of a network that one rank of a layout computes, and the collectives between its layers.
//
// On the axis of tensor parallelism an activation is replicated, a partial sum, or split by features or by
// the elements of the sequence. Each kind of layer takes some of these and leaves another:
//
//   kind                          takes                       leaves                 its weights
//   embedding of tokens           numbers                     partial                split by entries
//   linear, tied linear           replicated                  split by features      split by outputs
//   linear                        split by features           partial                split by inputs
//   attention, GELU, SiLU, product, and others of each feature: what there is, if that is split
//   norms, sums, dropout          between                     between                replicated
//   routing, experts, combining   between                     between                replicated
//   loss                          split by features           (sums of a few numbers of each element)
//
// A linear layer that a norm reads, as before latent vectors, or whose features the keys of all heads share, takes and
// leaves `between`, and its weights are replicated. What travels so that heads have the shared features is left out.
//
// `between` is split by elements with sequence parallelism, else replicated. Where a layer takes another
// placement than the layer before leaves, the change is a collective (tensor_placement.h), and so is the
// change of the gradient on the way back, whose placements are the others' duals: what a layer with split
// weights reads replicated has a partial gradient. So Megatron-LM's tensor parallelism (Shoeybi 2019, arXiv
// 1909.08053, 3) is two all-reduces of a block in each direction, and with sequence parallelism (Korthikanti
// 2022, 4.2.2) as many gathers and reduce-scatters, and the gathers again for weight gradients.
//
// On the axis of context every activation is split by elements. Attention reads all keys and values, which
// travel around a ring (Liu 2023, arXiv 2310.01889); with causal attention, ranks have early and late elements,
// and so the same work.
//
// With fewer heads of keys and values than ranks, several ranks have the same.
//
// Tokens go to the ranks that have their experts by an all-to-all, and come back by another; their gradients
// likewise. Each rank has as many experts, and of their tokens as many as it sends.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/collective/catalogue.h"
#include "models/layout/layout.h"
#include "models/network/work.h"

namespace paceline::models {

// An exchange at the output of a layer, between ranks that work on one sample or have experts for each other's
// tokens. Its elements are those of the whole tensor of one sample over the ranks of the axis; on the axis of
// experts they are those that one rank sends.
struct Exchange {
  enum class Axis { tensor, context, expert };
  Axis axis = Axis::tensor;
  std::int64_t elements = 0;
  int times = 1;                            // that it travels, one after the other
  int copies = 1;                           // of each token, one for each of its experts
  std::optional<Collective> forward = {};   // behind the layer's forward pass
  std::optional<Collective> backward = {};  // of the gradient, ahead of its backward pass
  // Whether what was gathered is gathered again in the backward pass, where weight gradients need it.
  bool again = false;
  // The layers that read it. What travels on the way back does so beside their weight gradients, and what
  // is gathered again beside their gradients of activations.
  std::vector<int> readers = {};
};

struct RankWork {
  NetworkWork network;                           // shares of all layers
  std::vector<std::vector<Exchange>> exchanges;  // of each layer
};

// The network as a rank of the layout has it; stages are not told apart. Throws InputError that names the
// option where the network is no transformer, or its heads or experts do not divide.
[[nodiscard]] RankWork rank_work(const NetworkWork& network, const Layout& layout);

}  // namespace paceline::models
