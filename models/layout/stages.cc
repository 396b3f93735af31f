// Tests: tests/models/layout_test.cc.
#include "models/layout/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::models {
namespace {

// How many of `blocks` each chunk has.
std::vector<int> shared_out(int blocks, int chunks) {
  std::vector<int> sizes(to_size(chunks), (blocks + chunks - 1) / chunks);
  int over = sizes.front() * chunks - blocks;
  std::vector<std::size_t> order = {to_size(chunks - 1), 0};
  for (int chunk = chunks - 2; chunk > 0; --chunk) order.push_back(to_size(chunk));
  for (std::size_t i = 0; over > 0; ++i, --over) --sizes[order[i]];
  return sizes;
}

}  // namespace

Stages stages_of(const NetworkWork& network, const Layout& layout) {
  Stages cut{.stages = layout.pipeline, .chunks = layout.chunks, .chunk_of = {}, .sent = {}};
  if (layout.pipeline == 1) return cut;
  const int chunks = layout.pipeline * layout.chunks;
  // The number of the block that each layer is in; -1 ahead of all, and their number behind them.
  std::vector<int> block(network.layers.size());
  std::string_view last;
  int blocks = 0;
  bool is_behind = false;  // the last block
  for (std::size_t i = 0; i < block.size(); ++i) {
    const std::string_view name = block_of(network.layers[i].name);
    is_behind = name.empty() && blocks > 0;
    if (!name.empty() && name != last) {
      ++blocks;
      last = name;
    }
    block[i] = is_behind ? blocks : blocks - 1;
  }
  if (network.sequence == 0 || blocks == 0 || (blocks > 1 && !is_behind))
    throw InputError({"--pipeline"}, fmt::format("{} is no stack of blocks", network.name),
                     "give a language model as --model, or leave it out");
  // The layers ahead of the blocks may be a chunk, and those behind them another.
  if (chunks > blocks + 2)
    throw InputError({layout.chunks > 1 ? "--chunks" : "--pipeline"},
                     fmt::format("{} has {} blocks for {} chunks", network.name, blocks, chunks),
                     "choose fewer");
  std::vector<int> chunk_of_block;
  const std::vector<int> sizes = shared_out(blocks, chunks);
  for (std::size_t chunk = 0; chunk < sizes.size(); ++chunk)
    chunk_of_block.insert(chunk_of_block.end(), to_size(sizes[chunk]), static_cast<int>(chunk));
  for (const int b : block)
    cut.chunk_of.push_back(b < 0 ? 0 : b == blocks ? chunks - 1 : chunk_of_block[to_size(b)]);
  cut.sent.assign(to_size(chunks), 0);
  for (std::size_t i = 0; i < block.size(); ++i)
    for (const int input : network.layers[i].inputs)
      if (input != network_input && cut.chunk_of[to_size(input)] != cut.chunk_of[i])
        cut.sent[to_size(cut.chunk_of[to_size(input)])] =
            network.layers[to_size(input)].output.elements();
  return cut;
}

}  // namespace paceline::models
