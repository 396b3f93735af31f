// Output shapes of a network's layers, from the shape of its input.
#pragma once

#include <vector>

#include "models/network/network.h"

namespace paceline::models {

// The output shape of each layer. Convolution and pooling give
//   floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1.
// Pooling with `ceil` rounds up, but drops a last window that would start in the padding. Throws
// InputError that names the layer if shapes do not fit or a tensor would have more than 2^40
// elements. O(layers) time.
[[nodiscard]] std::vector<Shape> infer_shapes(const Network& network);

}  // namespace paceline::models
