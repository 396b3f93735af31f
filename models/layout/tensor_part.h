// With tensor parallelism a rank has a part of a network, which is a network that it can compute (Shoeybi 2019, arXiv
// 1909.08053, 3). Norms and residuals are whole on each rank, without sequence parallelism.
//
// The part has the layers of the whole network: linear layers with a share of the outputs or of the inputs,
// attention with a share of the heads, and embeddings with a share of the entries. It is the same network on all
// ranks; which elements of the whole parameters a rank has is in the cuts. Between layers the ranks sum what
// rank_work.h says.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "models/collective/rank_program.h"
#include "models/layout/layer_placement.h"
#include "models/network/network.h"

namespace paceline::models {

// The elements of a parameter that a rank has. The parameter is `repeats` times as many elements as `stride`, one behind
// the other, and of each of these the rank has the spans, one behind the other.
struct TensorCut {
  std::int64_t repeats = 1;
  std::int64_t stride = 1;
  std::vector<Elements> spans;
  bool is_split = false;  // else each rank has all of it
};

struct TensorPart {
  int ranks = 1;
  int rank = 0;
  Network network;
  std::vector<TensorCut> cuts;  // by parameter, in backward order (NetworkWork::gradients)
  // The ranks sum the outputs, and the gradients of the outputs, of these layers.
  std::vector<bool> sums_output;
  std::vector<bool> sums_gradient;
  bool splits_loss = false;  // whether each rank has the logits of a share of the classes
};

// Throws InputError that names --tensor where the network is no transformer, a size does not divide, or a layer is read
// by layers with whole and with split weights.
[[nodiscard]] TensorPart tensor_part(const Network& network, int ranks, int rank);

// The part's flat array (all parameters, one behind the other, as the cuts have them) of the whole network's.
[[nodiscard]] std::vector<float> part_of(const TensorPart& part, std::span<const float> whole);
// Writes a part into the whole array.
void put_part(const TensorPart& part, std::span<const float> values, std::span<float> whole);

}  // namespace paceline::models
