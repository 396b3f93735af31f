// Tests: tests/models/k_fac_test.cc.
#include "models/plan/k_fac.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/catalogue.h"

namespace paceline::models {
namespace {

double triangle(std::int64_t rows) {
  const auto n = static_cast<double>(rows);
  return n * (n + 1) / 2;
}

double squared(std::int64_t rows) {
  return static_cast<double>(rows) * static_cast<double>(rows);
}

double inverse_flops(std::int64_t rows) {
  return 7.0 / 3 * squared(rows) * static_cast<double>(rows);
}

FisherBlock block_of(const LayerWork& layer, int index) {
  FisherBlock block{.layer = index, .gradients = layer.parameter_elements()};
  const bool has_products =
      layer.kind == "convolution" || layer.kind == "fully_connected" || layer.kind == "linear";
  if (layer.kind == "batch_norm") {
    block.outputs = block.gradients;
  } else if (has_products) {
    const ParameterTensor& weight = layer.parameters.front();
    block.groups = layer.groups;
    block.outputs = weight.shape.front() / layer.groups;
    block.inputs = weight.elements / weight.shape.front() + (layer.parameters.size() > 1 ? 1 : 0);
    block.positions = std::max<std::int64_t>(1, layer.output.elements() / weight.shape.front());
  }
  return block;
}

double cost(const FisherBlock& block) {
  return block.outputs > 0 ? block.inversion_flops() + block.preconditioning_flops()
                           : static_cast<double>(block.gradients);
}

std::vector<int> balanced(std::span<const FisherBlock> blocks, int ranks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return cost(blocks[a]) > cost(blocks[b]); });
  using Loaded = std::pair<double, int>;  // what a rank has so far, and the rank
  std::priority_queue<Loaded, std::vector<Loaded>, std::greater<>> least;
  const int used = static_cast<int>(std::min(blocks.size(), to_size(ranks)));
  for (int rank = 0; rank < used; ++rank) least.emplace(0, rank);
  std::vector<int> owners(blocks.size());
  for (const std::size_t block : order) {
    const auto [load, rank] = least.top();
    least.pop();
    owners[block] = rank;
    least.emplace(load + cost(blocks[block]), rank);
  }
  return owners;
}

}  // namespace

double FisherBlock::input_triangle() const {
  return static_cast<double>(groups) * triangle(inputs);
}

double FisherBlock::output_triangle() const {
  return static_cast<double>(groups) * triangle(outputs);
}

double FisherBlock::squares() const {
  return static_cast<double>(groups) * (squared(inputs) + squared(outputs));
}

double FisherBlock::inversion_flops() const {
  return static_cast<double>(groups) * (inverse_flops(inputs) + inverse_flops(outputs));
}

double FisherBlock::preconditioning_flops() const {
  if (inputs == 0) return 2 * squared(outputs);
  const auto a = static_cast<double>(inputs);
  const auto g = static_cast<double>(outputs);
  return static_cast<double>(groups) * 2 * g * a * (g + a);
}

std::vector<FisherBlock> fisher_blocks(const NetworkWork& network) {
  std::vector<FisherBlock> blocks;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    if (!network.layers[i].parameters.empty())
      blocks.push_back(block_of(network.layers[i], static_cast<int>(i)));
  }
  return blocks;
}

std::vector<int> owners_of(std::span<const FisherBlock> blocks, int ranks, ServerPlacement rule) {
  check_rank_count(ranks);
  if (rule == ServerPlacement::balanced) return balanced(blocks, ranks);
  std::vector<int> owners(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) owners[i] = static_cast<int>(i % to_size(ranks));
  return owners;
}

double most_sent(std::span<const double> shares, std::span<const int> owners, int ranks) {
  PACELINE_ASSERT(shares.size() == owners.size(), "every share has its owner");
  if (ranks == 1) return 0;
  std::map<int, double> owned;
  double all = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    owned[owners[i]] += shares[i];
    all += shares[i];
  }
  if (static_cast<int>(owned.size()) < ranks) return all;
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  return all - std::min_element(owned.begin(), owned.end(), less)->second;
}

}  // namespace paceline::models
