// Tests: tests/models/optimizer_test.cc.
#include "models/network/optimizer.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace paceline::models {
namespace {

constexpr double fp32 = 4;

// A tensor as matrices of equal sides: weights of experts are one for each; other weights are rows of outputs.
struct Matrices {
  double count = 0;  // 0: it is a vector
  double rows = 0;
  double columns = 0;
};

Matrices matrices_of(const ParameterTensor& tensor, const LayerWork& layer) {
  if (tensor.shape.size() < 2) return {};
  const bool has_experts = layer.kind == "expert_linear";
  const auto rows = static_cast<double>(tensor.shape[has_experts ? 1 : 0]);
  const double count = has_experts ? static_cast<double>(tensor.shape.front()) : 1;
  return {count, rows, static_cast<double>(tensor.elements) / (count * rows)};
}

OptimizerCost cost_of(const ParameterTensor& tensor, const LayerWork& layer,
                      const Optimizer& optimizer) {
  constexpr double block_of_8_bits = 256;
  constexpr double least_of_8_bits = 4096;
  constexpr double newton_schulz_steps = 5;
  const auto n = static_cast<double>(tensor.elements);
  const Matrices matrices = matrices_of(tensor, layer);
  OptimizerCost cost;
  double also_read = 0;  // numbers
  switch (optimizer.kind) {
    case OptimizerKind::stated:
      cost.kept = optimizer.states * n;
      break;
    case OptimizerKind::sgd:
      break;
    case OptimizerKind::momentum:
      cost.kept = n;
      break;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      cost.kept = 2 * n;
      break;
    case OptimizerKind::lamb:
      cost.kept = 2 * n;
      also_read = 2 * n;
      break;
    case OptimizerKind::adafactor:
      cost.kept = matrices.count == 0 ? n : matrices.count * (matrices.rows + matrices.columns);
      also_read =
          2 *
          n;  // gradients, for the means of rows and columns and for the update's root mean square
      break;
    case OptimizerKind::muon: {
      const bool is_orthogonalised = matrices.count > 0 && !block_of(layer.name).empty();
      cost.kept = is_orthogonalised ? n : 2 * n;
      if (!is_orthogonalised) break;
      const auto [r, c] = std::minmax(matrices.rows, matrices.columns);
      cost.flops = matrices.count * newton_schulz_steps * (4 * r * r * c + 2 * r * r * r);
      break;
    }
    case OptimizerKind::adam_8bit:
      cost.kept = n < least_of_8_bits ? 2 * n : n / 2 + 2 * n / block_of_8_bits;
      break;
  }
  cost.bytes = fp32 * (3 * n + 2 * cost.kept + also_read);
  return cost;
}

}  // namespace

OptimizerCost optimizer_cost(std::span<const LayerWork> layers, const Optimizer& optimizer) {
  OptimizerCost sum;
  for (const LayerWork& layer : layers)
    for (const ParameterTensor& tensor : layer.parameters) {
      const OptimizerCost cost = cost_of(tensor, layer, optimizer);
      sum.kept += cost.kept;
      sum.bytes += cost.bytes;
      sum.flops += cost.flops;
    }
  return sum;
}

}  // namespace paceline::models
