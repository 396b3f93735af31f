// A network as JSON, for tools (schema paceline.network/1, docs/formats.md).
#pragma once

#include <string>

#include "models/network/work.h"

namespace paceline::models {

// The whole document: layers with their tensors and costs, and the gradients in the order in which
// they are produced.
[[nodiscard]] std::string to_json(const NetworkWork& network);

}  // namespace paceline::models
