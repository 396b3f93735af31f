// Bodies of the update of all parameters (runtime/device/parameter_update.h): first the norms of all
// tensors in one pass where there is LARS, then one pass over masters, momentum and working copies.
//
// The table is cut twice, once for all steps. Norms have the blocks and the order of additions of
// runtime/device/cpu_update.cc and of square_sums() (runtime/tensor/optimizer_kernels.h), so that
// they have the CPU's bits: a block of 16,384 numbers has sixteen sums, number i in sum i % 16, which
// are added in order; the blocks of a tensor are added in order. The update, whose numbers do not
// depend on each other, has smaller tiles, so that the last wave of blocks of a GPU is short.
//
// Products and sums are rounded apart, as on the CPU: the units that include this header are
// compiled without contraction.
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/device/cuda/bodies/numbers.h"
#include "runtime/device/cuda/bodies/update_table.h"
#include "runtime/device/cuda/bodies/working_copies.h"

namespace paceline::runtime::cuda {

// The sums of squares of weights and gradients, block by block. 32 threads have one block: half of
// them the weights and half the gradients, each the numbers i % 16 of its own. 8 bytes an element.
// The accesses of a half are 64 bytes together; with 16 bytes a thread a block would have eight
// threads, and too few bytes on their way.
struct SquareSumsBody {
  static constexpr int phases = 2;
  static constexpr unsigned lanes = 16;
  const Stretch* stretches;
  std::uint32_t stretch_count;
  const float* weights;
  const float* gradients;
  BlockSums* sums;
  std::uint64_t elements;  // of the flat arrays

  PACELINE_HD void phase(int p, const Block& block) const {
    const unsigned group = block.block * (block.threads / (2 * lanes)) + block.thread / (2 * lanes);
    if (group >= stretch_count) return;
    const bool is_gradient = block.thread / lanes % 2 == 1;
    auto* const lane_sums = block.shared<double>();
    if (p == 0) {
      const Stretch stretch = stretches[group];
      const float* const from = (is_gradient ? gradients : weights) + stretch.first;
      lane_sums[block.thread] = lane_sum(from, stretch.elements, block.thread % lanes);
    } else if (block.thread % lanes == 0) {
      double total = 0;
      for (unsigned lane = 0; lane < lanes; ++lane) total += lane_sums[block.thread + lane];
      (is_gradient ? sums[group].gradients : sums[group].weights) = total;
    }
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(stretches, stretch_count);
    visitor.read(weights, elements);
    visitor.read(gradients, elements);
    visitor.write(sums, stretch_count);
  }

 private:
  // Loads come sixteen at a time before their sums, so that they are on their way together.
  static PACELINE_HD double lane_sum(const float* from, std::uint32_t count, unsigned lane) {
    constexpr unsigned ahead = 16;
    double sum = 0;
    std::uint32_t i = lane;
    for (; i + (ahead - 1) * lanes < count; i += ahead * lanes) {
      float values[ahead];
#pragma unroll
      for (unsigned k = 0; k < ahead; ++k) values[k] = from[i + k * lanes];
#pragma unroll
      for (unsigned k = 0; k < ahead; ++k) sum += double{values[k]} * double{values[k]};
    }
    for (; i < count; i += lanes) sum += double{from[i]} * double{from[i]};
    return sum;
  }
};

// The rate of each tensor, from the sums of its blocks (LARS: You 2017, equation 6). One thread has
// a tensor. 16 bytes a block of 16,384 elements.
struct LarsRatesBody {
  const TensorEntry* tensors;
  std::uint32_t tensor_count;
  const BlockSums* sums;
  std::uint32_t block_count;
  float* rates;
  double learning_rate;
  double trust_coefficient;
  double epsilon;
  double gradient_factor;  // its magnitude

  PACELINE_HD void operator()(std::uint64_t i) const {
    const TensorEntry tensor = tensors[i];
    BlockSums total;
    for (std::uint32_t b = 0; b < tensor.blocks; ++b) {
      const BlockSums block = sums[tensor.first_block + b];
      total.weights += block.weights;
      total.gradients += block.gradients;
    }
    const double weight_norm = sqrt(total.weights);
    const double gradient_norm = sqrt(total.gradients) * gradient_factor;
    double rate = learning_rate;
    if (weight_norm != 0 && gradient_norm != 0) {
      const double own = trust_coefficient * weight_norm /
                         (gradient_norm + double{tensor.decay} * weight_norm + epsilon);
      rate = learning_rate * own;
    }
    rates[i] = static_cast<float>(rate);
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(tensors, tensor_count);
    visitor.read(sums, block_count);
    visitor.write(rates, tensor_count);
  }
};

// The numbers of one element, as the rules below take them.
struct UpdatedNumbers {
  float weight;
  float momentum;
  float mean_square;
};

// Momentum SGD and Nesterov: sgd_step() of runtime/tensor/optimizer_kernels.h.
struct SgdRule {
  static constexpr bool has_mean_square = false;
  float gradient_factor;
  float momentum;
  float look_ahead;
  bool nesterov;

  PACELINE_HD void step(UpdatedNumbers& n, float gradient, float decay, float rate) const {
    const float change = rate * (gradient * gradient_factor + decay * n.weight);
    const float v = momentum * n.momentum + change;
    n.momentum = v;
    n.weight = n.weight - (nesterov ? look_ahead * v + change : v);
  }
};

// The RMSprop warm-up: rmsprop_step() of runtime/tensor/optimizer_kernels.h.
struct RmspropRule {
  static constexpr bool has_mean_square = true;
  float gradient_factor;
  float momentum;
  float sgd_rate;
  float rmsprop_rate;
  float square_decay;
  float epsilon;

  PACELINE_HD void step(UpdatedNumbers& n, float gradient, float decay, float /*rate*/) const {
    const float g = gradient * gradient_factor + decay * n.weight;
    const float m = square_decay * n.mean_square + (1 - square_decay) * (g * g);
    const float rate = sgd_rate + rmsprop_rate / (sqrtf(m) + epsilon);
    const float v = momentum * n.momentum + rate * g;
    n.mean_square = m;
    n.momentum = v;
    n.weight = n.weight - v;
  }
};

// Takes new weights nowhere.
struct NoWriter {
  PACELINE_HD void take(std::uint64_t /*i*/, float /*weight*/) const {}
  PACELINE_HD void take(std::uint64_t /*i*/, const float (&/*weights*/)[4]) const {}
};

// One step of the rule on all tensors, and where there are working copies the new weights rounded to
// their types. A block has a tile. 20 bytes an element, 28 with mean squares, and the size of a number
// of the copies more. The second phase takes to the copies what is in shared memory.
//
// Groups of four numbers of the flat arrays are aligned in all of them if the arrays themselves are.
template <class Rule, class CopiesOrNone>
struct UpdateBody {
  static constexpr bool has_copies = CopiesOrNone::exist;
  static constexpr int phases = has_copies ? 2 : 1;
  static constexpr unsigned width = 4;
  const Stretch* tiles;
  std::uint32_t tile_count;
  const TensorEntry* tensors;
  std::uint32_t tensor_count;
  const float* rates;  // of each tensor; null where all have `rate`
  float rate;
  Rule rule;
  float* weights;
  const float* gradients;
  float* momentum;
  float* mean_square;
  CopiesOrNone copies;
  std::uint64_t elements;  // of the flat arrays
  bool aligned;            // all arrays begin at multiples of 16 bytes

  PACELINE_HD void phase(int p, const Block& block) const {
    const Stretch tile = tiles[block.block];
    if constexpr (has_copies) {
      const CopyEntry copy = copies.entries[tile.tensor];
      if (p == 1 && copy.in_order) return;
      with_writer(tile, copy, block, [this, p, &tile, &block](const auto& writer) {
        if (p == 0)
          update(tile, block, writer);
        else
          writer.write(block);
      });
    } else {
      update(tile, block, NoWriter{});
    }
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(tiles, tile_count);
    visitor.read(tensors, tensor_count);
    if (rates != nullptr) visitor.read(rates, tensor_count);
    visitor.read(gradients, elements);
    visitor.write(weights, elements);
    visitor.write(momentum, elements);
    if constexpr (Rule::has_mean_square) visitor.write(mean_square, elements);
    if constexpr (has_copies) copies.access(visitor);
  }

 private:
  template <class Writer>
  PACELINE_HD void update(const Stretch& tile, const Block& block, const Writer& writer) const {
    const float decay = tensors[tile.tensor].decay;
    const float own_rate = rates == nullptr ? rate : rates[tile.tensor];
    const std::uint64_t end = tile.first + tile.elements;
    // Groups of four from `whole` to `whole_end`, single numbers before and behind.
    std::uint64_t whole = aligned ? (tile.first + width - 1) / width * width : end;
    std::uint64_t whole_end = aligned ? end / width * width : end;
    if (whole > whole_end) whole = whole_end = end;
    for (std::uint64_t i = tile.first + block.thread; i < whole; i += block.threads)
      single(i, decay, own_rate, writer);
    for (std::uint64_t i = whole + std::uint64_t{block.thread} * width; i < whole_end;
         i += std::uint64_t{block.threads} * width)
      group(i, decay, own_rate, writer);
    for (std::uint64_t i = whole_end + block.thread; i < end; i += block.threads)
      single(i, decay, own_rate, writer);
  }
  template <class Writer>
  PACELINE_HD void single(std::uint64_t i, float decay, float own_rate,
                          const Writer& writer) const {
    UpdatedNumbers n{weights[i], momentum[i], 0};
    if constexpr (Rule::has_mean_square) n.mean_square = mean_square[i];
    rule.step(n, gradients[i], decay, own_rate);
    store(weights + i, n.weight);
    store(momentum + i, n.momentum);
    if constexpr (Rule::has_mean_square) store(mean_square + i, n.mean_square);
    writer.take(i, n.weight);
  }
  template <class Writer>
  PACELINE_HD void group(std::uint64_t i, float decay, float own_rate, const Writer& writer) const {
    float w[width];
    float g[width];
    float v[width];
    float m[width] = {};
    load(weights + i, w);
    load(gradients + i, g);
    load(momentum + i, v);
    if constexpr (Rule::has_mean_square) load(mean_square + i, m);
#pragma unroll
    for (unsigned k = 0; k < width; ++k) {
      UpdatedNumbers n{w[k], v[k], m[k]};
      rule.step(n, g[k], decay, own_rate);
      w[k] = n.weight;
      v[k] = n.momentum;
      m[k] = n.mean_square;
    }
    store(weights + i, w);
    store(momentum + i, v);
    if constexpr (Rule::has_mean_square) store(mean_square + i, m);
    writer.take(i, w);
  }
};

}  // namespace paceline::runtime::cuda
