// Tests: tests/cuda/device/update_test.cc.
#include <cmath>

#include "runtime/device/cuda/bodies/update.h"
#include "runtime/device/cuda/launch.h"
#include "runtime/device/cuda/start.h"

namespace paceline::runtime::cuda {
namespace {

cudaError_t start_norms(cudaStream_t stream, const UpdateTables& t, const UpdateRule& rule,
                        const UpdatedArrays& a) {
  if (t.block_count > 0) {
    constexpr unsigned threads = 256;
    constexpr unsigned blocks_of_norms = threads / (2 * SquareSumsBody::lanes);
    const SquareSumsBody body{t.blocks, t.block_count, a.weights, a.gradients, t.sums, t.elements};
    const cudaError_t status =
        start_phased(stream, body,
                     {.blocks = (t.block_count + blocks_of_norms - 1) / blocks_of_norms,
                      .threads = threads,
                      .shared_bytes = threads * sizeof(double)});
    if (status != cudaSuccess) return status;
  }
  return start_elements(stream,
                        LarsRatesBody{.tensors = t.tensors,
                                      .tensor_count = t.tensor_count,
                                      .sums = t.sums,
                                      .block_count = t.block_count,
                                      .rates = t.rates,
                                      .learning_rate = rule.learning_rate,
                                      .trust_coefficient = rule.trust_coefficient,
                                      .epsilon = rule.lars_epsilon,
                                      .gradient_factor = std::abs(double{rule.gradient_factor})},
                        t.tensor_count);
}

bool is_aligned(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
}

// `t` has the tiles of the update: its own, or those of its copies.
template <class Rule, class CopiesOrNone>
cudaError_t start_tiles(cudaStream_t stream, const UpdateTables& t, const UpdateRule& rule,
                        const UpdatedArrays& a, const Rule& step, const CopiesOrNone& copies,
                        std::uint32_t shared_bytes) {
  const UpdateBody<Rule, CopiesOrNone> body{
      .tiles = t.tiles,
      .tile_count = t.tile_count,
      .tensors = t.tensors,
      .tensor_count = t.tensor_count,
      .rates = t.block_count > 0 ? t.rates : nullptr,
      .rate = static_cast<float>(rule.learning_rate),
      .rule = step,
      .weights = a.weights,
      .gradients = a.gradients,
      .momentum = a.momentum,
      .mean_square = a.mean_square,
      .copies = copies,
      .elements = t.elements,
      .aligned = is_aligned(a.weights) && is_aligned(a.gradients) && is_aligned(a.momentum) &&
                 is_aligned(a.mean_square)};
  return start_phased(stream, body,
                      {.blocks = t.tile_count, .threads = 256, .shared_bytes = shared_bytes});
}

template <class Rule>
cudaError_t start_rule(cudaStream_t stream, UpdateTables t, const UpdateRule& rule,
                       const UpdatedArrays& a, const UpdatedCopies& copies, const Rule& step) {
  if (copies.table == nullptr) return start_tiles(stream, t, rule, a, step, NoCopies{}, 0);
  const CopyTables& c = copies.on_device;
  t.tiles = c.tiles;
  t.tile_count = c.tile_count;
  return start_tiles(stream, t, rule, a, step,
                     Copies{.entries = c.entries,
                            .entry_count = c.entry_count,
                            .table = copies.table->copies().data()},
                     c.shared_bytes);
}

}  // namespace

cudaError_t start_update(cudaStream_t stream, const UpdateTables& tables, const UpdateRule& rule,
                         const UpdatedArrays& arrays, const UpdatedCopies& copies) {
  if (tables.tile_count == 0) return cudaSuccess;
  // Without tensors that have a rate of their own there are no blocks.
  if (tables.block_count > 0 && !rule.rmsprop) {
    const cudaError_t status = start_norms(stream, tables, rule, arrays);
    if (status != cudaSuccess) return status;
  }
  if (rule.rmsprop)
    return start_rule(stream, tables, rule, arrays, copies,
                      RmspropRule{.gradient_factor = rule.gradient_factor,
                                  .momentum = rule.momentum,
                                  .sgd_rate = rule.sgd_rate,
                                  .rmsprop_rate = rule.rmsprop_rate,
                                  .square_decay = rule.square_decay,
                                  .epsilon = rule.rmsprop_epsilon});
  return start_rule(stream, tables, rule, arrays, copies,
                    SgdRule{.gradient_factor = rule.gradient_factor,
                            .momentum = rule.momentum,
                            .look_ahead = rule.look_ahead,
                            .nesterov = rule.nesterov});
}

}  // namespace paceline::runtime::cuda
