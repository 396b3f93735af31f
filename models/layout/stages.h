// How a network is cut into the stages of a pipeline.
//
// Blocks (block_of() in work.h) are shared out evenly, in the order of the network. Where they do not divide, the
// last chunk has one less, then the first, because these also have what is in no block: embeddings, and the head
// with its loss; then those before the last, one after the other. With two chunks more than blocks, these two have no
// block.
#pragma once

#include <vector>

#include "models/layout/layout.h"
#include "models/network/work.h"

namespace paceline::models {

struct Stages {
  int stages = 1;
  int chunks = 1;             // of a stage
  std::vector<int> chunk_of;  // of each layer, counted over all stages in the order of the network
  std::vector<std::int64_t>
      sent;  // elements of a sample that leave each chunk for the next; 0 behind the last

  // Chunk k of the network is on stage k modulo stages.
  [[nodiscard]] int stage_of(int layer) const {
    return stages == 1 ? 0 : chunk_of[static_cast<std::size_t>(layer)] % stages;
  }
};

// Throws InputError that names the option where there are more chunks than blocks.
[[nodiscard]] Stages stages_of(const NetworkWork& network, const Layout& layout);

}  // namespace paceline::models
