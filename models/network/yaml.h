// Networks as people write them (docs/formats.md, "Network").
//
//   network: my-net
//   input: [3, 224, 224]           # or [features], or {tokens: 512}
//   stored_sample: 112 kB          # optional
//   layers:
//     - {name: conv1, kind: convolution, channels: 64, kernel: 7, stride: 2, padding: 3,
//        bias: false}
//     - {name: bn1, kind: batch_norm}
//     - {name: sum, kind: add, inputs: [bn1, pool1]}
//
// A layer without `input` or `inputs` reads the one above it; "input" is the network's. Layers may
// stand in any order as long as they do not read each other in a circle.
#pragma once

#include <string>
#include <string_view>

#include "models/network/network.h"

namespace paceline::models {

// `file` names the text in errors. Throws InputError with file, line and column; also for networks
// whose shapes do not fit together (shape_inference.h) or whose work is too large (work.h).
[[nodiscard]] Network parse_network_yaml(std::string_view text, const std::string& file);
// YAML that parse_network_yaml reads back to an equal network.
[[nodiscard]] std::string to_yaml(const Network& network);

}  // namespace paceline::models
